//! The archive: an OCI image layout, with both its own index and that of `docker save`.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::Builder;

use crate::elf::Architecture;
use crate::layer::{append_file, layer};
use crate::reference::NAME_ANNOTATION;
use crate::{Image, ImageError};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What the archive holds, by SHA-256.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Takes a blob in; what names it elsewhere.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Blob {
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let blob = Blob { media_type: media_type.to_owned(), size: bytes.len(), digest: digest.clone() };
        self.0.insert(digest, bytes);
        blob
    }
}

struct Blob {
    media_type: String,
    size: usize,
    digest: String,
}

impl Blob {
    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest(), "size": self.size})
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.digest)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }
}

pub(crate) fn write(image: &Image, architecture: Architecture, out: &mut impl Write) -> Result<(), ImageError> {
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER, layer(&image.entries)?);
    let config = blobs.add(CONFIG, bytes(&config(image, architecture, &layer)));
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(), "layers": [layer.descriptor()],
    });
    let manifest = blobs.add(MANIFEST, bytes(&manifest));
    let name = image.reference.to_string();
    let mut archive = Builder::new(out);
    append_file(&mut archive, "oci-layout", 0o644, &bytes(&json!({"imageLayoutVersion": "1.0.0"})))?;
    append_file(&mut archive, "index.json", 0o644, &bytes(&index(image, &manifest)))?;
    let docker = json!([{"Config": config.path(), "RepoTags": [name], "Layers": [layer.path()]}]);
    append_file(&mut archive, "manifest.json", 0o644, &bytes(&docker))?;
    for (digest, content) in &blobs.0 {
        append_file(&mut archive, &format!("blobs/sha256/{digest}"), 0o644, content)?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

fn config(image: &Image, architecture: Architecture, layer: &Blob) -> Value {
    let mut run = json!({});
    for (name, words) in [("Entrypoint", &image.entrypoint), ("Cmd", &image.command)] {
        if !words.is_empty() {
            run[name] = json!(words);
        }
    }
    if let Some(user) = &image.user {
        run["User"] = json!(user);
    }
    json!({
        "architecture": architecture.as_str(),
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer.digest()]},
    })
}

fn index(image: &Image, manifest: &Blob) -> Value {
    let mut descriptor = manifest.descriptor();
    descriptor["annotations"] = json!({
        NAME_ANNOTATION: image.reference.to_string(),
        "org.opencontainers.image.ref.name": image.reference.tag(),
    });
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]})
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::Reference;
    use crate::elf::tests::program;

    fn image() -> Image {
        let image = Image::new(Reference::parse("example.com/tool:1").unwrap()).user("65532:65532");
        image.link("/bin/sh", "tool").executable("/bin/tool", program(62, 1)).entrypoint(["/bin/tool"])
    }

    fn packed(image: &Image) -> Vec<u8> {
        let mut archive = Vec::new();
        image.write(&mut archive).unwrap();
        archive
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn json_of(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_in_whatever_order_it_comes() {
        let image = image();
        let mut turned = image.clone();
        turned.entries.reverse();
        assert_eq!(packed(&image), packed(&turned));
    }

    #[test]
    fn every_blob_is_found_under_its_digest_from_the_index_on() {
        let files = files(&packed(&image()));
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
            let content = files[&format!("blobs/sha256/{digest}")].clone();
            assert_eq!(descriptor["size"], content.len());
            content
        };
        let index = json_of(&files["index.json"]);
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "example.com/tool:1");
        let manifest = json_of(&blob(&index["manifests"][0]));
        let config = json_of(&blob(&manifest["config"]));
        assert_eq!(config["architecture"], "amd64");
        assert_eq!(config["config"], json!({"Entrypoint": ["/bin/tool"], "User": "65532:65532"}));
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        let layer = blob(&manifest["layers"][0]);
        let held = self::files(&layer);
        assert_eq!(held.keys().collect::<Vec<_>>(), ["bin/", "bin/sh", "bin/tool"]);
        assert_eq!(held["bin/tool"], program(62, 1));
    }

    #[test]
    fn what_a_container_runs_by_default_gives_way_to_its_arguments() {
        let image =
            Image::new(Reference::parse("tool").unwrap()).executable("/bin/tool", program(62, 1)).command(["tool"]);
        let files = files(&packed(&image));
        let docker = json_of(&files["manifest.json"]);
        let config = json_of(&files[docker[0]["Config"].as_str().unwrap()]);
        assert_eq!(config["config"], json!({"Cmd": ["tool"]}));
    }

    #[test]
    fn the_name_of_an_image_is_read_from_its_archive() {
        let found = Reference::all_of_archive(packed(&image()).as_slice()).unwrap();
        assert_eq!(found, [image().reference]);
        for broken in [&b""[..], b"no archive", &packed(&image())[..100]] {
            assert!(Reference::all_of_archive(broken).is_err());
        }
    }

    #[test]
    fn docker_reads_the_same_image() {
        let files = files(&packed(&image()));
        let docker = json_of(&files["manifest.json"]);
        assert_eq!(docker[0]["RepoTags"], json!(["example.com/tool:1"]));
        for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            assert!(files.contains_key(path.as_str().unwrap()), "{path}");
        }
    }

    #[test]
    fn an_image_whose_program_could_not_start_is_refused() {
        let refused = |image: Image| image.write(&mut std::io::sink()).unwrap_err().to_string();
        let empty = Image::new(Reference::parse("tool").unwrap());
        assert!(refused(empty.clone()).contains("holds no program"));
        assert!(refused(empty.clone().executable("/tool", program(62, 3))).contains("make release"));
        assert!(refused(empty.clone().executable("/tool", b"#!/bin/sh".to_vec())).contains("/tool"));
        assert!(refused(image().executable("/other", program(183, 1))).contains("Arm64"));
        assert!(refused(empty.file("/readme", Vec::new())).contains("holds no program"));
    }
}
