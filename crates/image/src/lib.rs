//! Container images of static binaries: one layer, no base, no container engine.
//!
//! An [`Image`] is written as an archive that is an OCI image layout and what `docker save` writes at the same time, so
//! that `docker load`, `podman load`, `ctr images import` and `skopeo` read it. The same input gives the same bytes:
//! times, owners and the order of files are fixed.
//!
//! ```no_run
//! use ocm_image::{Image, Reference};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let name = Reference::parse("example.com/hello:1.0")?;
//! let image = Image::new(name).executable("/hello", std::fs::read("hello")?).entrypoint(["/hello"]);
//! image.write(&mut std::fs::File::create("hello.tar")?)?;
//! # Ok(())
//! # }
//! ```

mod archive;
mod elf;
mod layer;
mod reference;

use std::io::{self, Write};

pub use elf::Architecture;
pub use reference::Reference;

/// Why an image could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It would not start in an image that holds nothing else.
    #[error(
        "failed to pack {path}: it is linked dynamically, and an image without a C library cannot start it; \
         build it with RUSTFLAGS=\"-C target-feature=+crt-static\" (`make release` does)"
    )]
    Dynamic {
        /// Where it would be in the image.
        path: String,
    },
    /// Only programs for Linux on known machines can be packed.
    #[error("failed to pack {path}: it is not a 64-bit Linux program for x86-64 or ARM")]
    NoProgram {
        /// Where it would be in the image.
        path: String,
    },
    /// The programs of one image run on one kind of machine.
    #[error("failed to pack {path}: it is for {found:?}, and what came before it for {first:?}")]
    Mixed {
        /// Where it would be in the image.
        path: String,
        /// What it is for.
        found: Architecture,
        /// What the image is for.
        first: Architecture,
    },
    /// The image has no program.
    #[error("failed to pack image {name}: it holds no program; add one with Image::executable")]
    Empty {
        /// The name of the image.
        name: String,
    },
    /// Not a name that an image can have.
    #[error("{name:?} is not a name of an image: {why}; write registry/repository:tag, as in ghcr.io/ocm-rs/ocm:0.1.0")]
    Name {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An archive could not be read.
    #[error("failed to read the archive of an image")]
    Read(#[source] io::Error),
    /// The archive could not be written.
    #[error("failed to write the archive of an image")]
    Write(#[from] io::Error),
}

/// A file of an image, or a symbolic link.
#[derive(Clone, Debug)]
enum Entry {
    File { bytes: Vec<u8>, executable: bool },
    Link { target: String },
}

/// An image to be packed.
#[derive(Clone, Debug)]
pub struct Image {
    reference: Reference,
    entries: Vec<(String, Entry)>,
    entrypoint: Vec<String>,
    command: Vec<String>,
    user: Option<String>,
}

impl Image {
    /// An empty image of this name.
    pub fn new(reference: Reference) -> Self {
        Self { reference, entries: Vec::new(), entrypoint: Vec::new(), command: Vec::new(), user: None }
    }

    /// Adds a static program at an absolute path.
    #[must_use]
    pub fn executable(self, path: &str, bytes: Vec<u8>) -> Self {
        self.entry(path, Entry::File { bytes, executable: true })
    }

    /// Adds a symbolic link at an absolute path.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.entry(path, Entry::Link { target: target.to_owned() })
    }

    /// Adds a file that everybody may read, at an absolute path.
    #[must_use]
    pub fn file(self, path: &str, bytes: Vec<u8>) -> Self {
        self.entry(path, Entry::File { bytes, executable: false })
    }

    fn entry(mut self, path: &str, entry: Entry) -> Self {
        self.entries.push((path.trim_start_matches('/').to_owned(), entry));
        self
    }

    /// What a container of this image runs; the arguments of a container come behind it.
    #[must_use]
    pub fn entrypoint<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.entrypoint = words.into_iter().map(Into::into).collect();
        self
    }

    /// What a container runs that has no arguments of its own; it follows the entry point, if there is one.
    #[must_use]
    pub fn command<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command = words.into_iter().map(Into::into).collect();
        self
    }

    /// The user, and after a colon the group, that containers run as, as numbers (default: root).
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Its full name.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Writes the archive.
    ///
    /// # Errors
    ///
    /// When a program in it could not start there, and when writing fails.
    pub fn write(&self, out: &mut impl Write) -> Result<(), ImageError> {
        let architecture = self.architecture()?;
        archive::write(self, architecture, out)
    }

    /// The one machine that all programs are for.
    fn architecture(&self) -> Result<Architecture, ImageError> {
        let mut found = None;
        for (path, entry) in &self.entries {
            let Entry::File { bytes, executable: true } = entry else { continue };
            let this = elf::static_program(bytes).map_err(|problem| problem.of(path))?;
            let first = *found.get_or_insert(this);
            if this != first {
                return Err(ImageError::Mixed { path: format!("/{path}"), found: this, first });
            }
        }
        found.ok_or_else(|| ImageError::Empty { name: self.reference.to_string() })
    }
}
