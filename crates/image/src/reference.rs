//! Names of images.

use std::fmt;
use std::io::{self, Read};

use serde_json::Value;

use crate::ImageError;

/// Where containerd looks for the full name of an image in an archive.
pub(crate) const NAME_ANNOTATION: &str = "io.containerd.image.name";

/// The full name of an image: registry, repository and tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: String,
}

impl Reference {
    /// Reads a name as people write it: `busybox` is `docker.io/library/busybox:latest`.
    ///
    /// # Errors
    ///
    /// When it is no name, or names a digest, which only what is packed decides.
    pub fn parse(name: &str) -> Result<Self, ImageError> {
        let invalid = |why| ImageError::Name { name: name.to_owned(), why };
        if name.contains('@') {
            return Err(invalid("a digest comes from what is packed"));
        }
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => ("docker.io", name),
        };
        let (repository, tag) = rest.split_once(':').unwrap_or((rest, "latest"));
        let library = registry == "docker.io" && !repository.contains('/');
        if !repository.split('/').all(is_part) || !is_host(registry) {
            return Err(invalid("parts of a name are lower-case letters and digits, with . _ - between them"));
        }
        if !is_tag(tag) {
            return Err(invalid("a tag is up to 128 letters, digits and . _ -"));
        }
        let repository = if library { format!("library/{repository}") } else { repository.to_owned() };
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.to_owned() })
    }

    /// The names of the images in an archive.
    ///
    /// # Errors
    ///
    /// When it cannot be read, has no index, or one with other names.
    pub fn all_of_archive(archive: impl Read) -> Result<Vec<Self>, ImageError> {
        let index = index_of(archive).map_err(ImageError::Read)?;
        let manifests = index["manifests"].as_array().into_iter().flatten();
        let names = manifests.map(|manifest| manifest["annotations"][NAME_ANNOTATION].as_str().unwrap_or_default());
        names.map(Self::parse).collect()
    }

    /// The part behind the registry, without the tag.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}:{}", self.registry, self.repository, self.tag)
    }
}

fn index_of(archive: impl Read) -> io::Result<Value> {
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        if entry.path()?.as_os_str() == "index.json" {
            return Ok(serde_json::from_reader(entry)?);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it holds no index.json, as every OCI image layout does"))
}

fn is_part(part: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.chars().all(inside) && part.starts_with(edge) && part.ends_with(edge)
}

fn is_host(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':'))
}

fn is_tag(tag: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&tag.len()) && tag.chars().all(inside) && !tag.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_everywhere() {
        let names = [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.35", "docker.io/library/busybox:1.35"),
            ("someone/tool", "docker.io/someone/tool:latest"),
            ("ghcr.io/ocm-rs/ocm:0.1.0", "ghcr.io/ocm-rs/ocm:0.1.0"),
            ("localhost:5000/a/b:c", "localhost:5000/a/b:c"),
        ];
        for (written, full) in names {
            assert_eq!(Reference::parse(written).unwrap().to_string(), full);
        }
    }

    #[test]
    fn an_invalid_name_is_refused_with_an_example() {
        for name in ["", "Upper", "a//b", "a:", "a:b:c", "-a", "a:-b", "a@sha256:00", "ghcr.io/", "a b"] {
            let error = Reference::parse(name).unwrap_err().to_string();
            assert!(error.contains("ghcr.io/ocm-rs/ocm"), "{name}: {error}");
        }
    }
}
