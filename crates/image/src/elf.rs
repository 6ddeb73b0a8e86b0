//! What has to be known of a program before it is packed: is it static, and for which machine?

use crate::ImageError;

/// The machine a program is for, by the name images call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Architecture {
    /// Its name in the configuration of an image.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// Why a program cannot be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NoProgram,
    Dynamic,
}

impl Problem {
    pub(crate) fn of(self, path: &str) -> ImageError {
        let path = format!("/{path}");
        match self {
            Self::NoProgram => ImageError::NoProgram { path },
            Self::Dynamic => ImageError::Dynamic { path },
        }
    }
}

const MAGIC_64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
/// The kind of segment that names the dynamic linker.
const INTERPRETER: u32 = 3;

/// The machine of a 64-bit ELF program that asks for no dynamic linker.
pub(crate) fn static_program(bytes: &[u8]) -> Result<Architecture, Problem> {
    let architecture = architecture(bytes).ok_or(Problem::NoProgram)?;
    match asks_for_linker(bytes).ok_or(Problem::NoProgram)? {
        true => Err(Problem::Dynamic),
        false => Ok(architecture),
    }
}

fn architecture(bytes: &[u8]) -> Option<Architecture> {
    let machine = bytes.starts_with(MAGIC_64_LITTLE).then(|| number(bytes, 18, 2))??;
    match machine {
        62 => Some(Architecture::Amd64),
        183 => Some(Architecture::Arm64),
        _ => None,
    }
}

/// Whether one of the program headers is that of an interpreter; `None` when they are cut off.
fn asks_for_linker(bytes: &[u8]) -> Option<bool> {
    let (table, size, count) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?);
    for index in 0..count {
        let header = table.checked_add(index.checked_mul(size)?)?;
        if number(bytes, header, 4)? == u64::from(INTERPRETER) {
            return Some(true);
        }
    }
    Some(false)
}

fn number(bytes: &[u8], at: u64, length: usize) -> Option<u64> {
    let start = usize::try_from(at).ok()?;
    let field = bytes.get(start..start.checked_add(length)?)?;
    Some(field.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program of one header of this type.
    pub(crate) fn program(machine: u8, header: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(MAGIC_64_LITTLE);
        bytes[18] = machine;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = header;
        bytes
    }

    #[test]
    fn a_static_program_names_its_architecture() {
        assert_eq!(static_program(&program(62, 1)), Ok(Architecture::Amd64));
        assert_eq!(static_program(&program(183, 1)), Ok(Architecture::Arm64));
    }

    #[test]
    fn a_program_that_needs_a_dynamic_linker_is_refused() {
        assert_eq!(static_program(&program(62, 3)), Err(Problem::Dynamic));
    }

    #[test]
    fn a_file_that_is_no_program_or_truncated_is_refused() {
        for bytes in [b"#!/bin/sh".to_vec(), Vec::new(), program(62, 1)[..60].to_vec(), program(62, 1)[..100].to_vec()]
        {
            let found = static_program(&bytes);
            let expected = if bytes.len() == 100 { Ok(Architecture::Amd64) } else { Err(Problem::NoProgram) };
            assert_eq!(found, expected, "{} bytes", bytes.len());
        }
        let mut endless = program(62, 1);
        endless[32..40].fill(0xff);
        assert_eq!(static_program(&endless), Err(Problem::NoProgram));
    }
}
