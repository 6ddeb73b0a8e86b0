//! Images of static binaries.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ocm_image::{Image, Reference};

/// Nobody in particular, so that containers run without root's rights.
const USER: &str = "65532:65532";

struct Options {
    binary: PathBuf,
    name: Reference,
    output: PathBuf,
}

/// Packs a binary, which the image starts, into an archive.
pub(crate) fn write(options: &[&str]) -> Result<()> {
    let options = read(options)?;
    let bytes = fs::read(&options.binary).with_context(|| format!("failed to read {}", options.binary.display()))?;
    let path = format!("/{}", file_name(&options.binary)?);
    let image = Image::new(options.name).executable(&path, bytes).entrypoint([path]).user(USER);
    save(&image, &options.output)?;
    eprintln!("image: {} is in {}", image.reference(), options.output.display());
    Ok(())
}

/// Written under another name and renamed, so that an interrupted run leaves no incomplete archive.
fn save(image: &Image, output: &Path) -> Result<()> {
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let part = output.with_extension("part");
    let file = File::create(&part).with_context(|| format!("failed to create {}", part.display()))?;
    let written = image.write(&mut BufWriter::new(file)).map_err(anyhow::Error::from);
    let saved = written.and_then(|()| Ok(fs::rename(&part, output)?));
    if saved.is_err() {
        let _ = fs::remove_file(&part);
    }
    saved
}

fn read(options: &[&str]) -> Result<Options> {
    let (mut binary, mut tag, mut output) = (None, None, None);
    for pair in options.chunks(2) {
        let place = match pair {
            ["--binary", _] => &mut binary,
            ["--tag", _] => &mut tag,
            ["--output", _] => &mut output,
            _ => bail!("image does not take {}\n{}", pair.join(" "), crate::USAGE),
        };
        *place = pair.get(1).copied();
    }
    let given = |option: Option<&str>, name: &str| {
        option.map(str::to_owned).with_context(|| format!("image wants {name}\n{}", crate::USAGE))
    };
    Ok(Options {
        binary: given(binary, "--binary")?.into(),
        name: Reference::parse(&given(tag, "--tag")?)?,
        output: given(output, "--output")?.into(),
    })
}

fn file_name(path: &Path) -> Result<&str> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.with_context(|| format!("{} does not end in the name of a file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_missing_or_unknown_is_named_with_the_usage() {
        for (line, named) in [
            (&["--binary", "ocm"][..], "--tag"),
            (&["--tag", "ocm", "--output", "f"][..], "--binary"),
            (&["--binary"][..], "--binary"),
            (&["--push", "yes"][..], "--push yes"),
        ] {
            let error = read(line).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("Usage:"), "{error}");
        }
    }

    #[test]
    fn a_binary_that_cannot_be_packed_leaves_no_archive_behind() {
        let folder = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        let script = folder.join("script");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&script, "#!/bin/sh").unwrap();
        let output = folder.join("script.tar");
        let line = ["--binary", script.to_str().unwrap(), "--tag", "script", "--output", output.to_str().unwrap()];
        assert!(format!("{:#}", write(&line).unwrap_err()).contains("/script"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
