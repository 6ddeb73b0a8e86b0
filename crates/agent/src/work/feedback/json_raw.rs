//! JSON text exactly as Go writes it, so that an agent of OCM that takes over changes nothing.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// What Go escapes in addition, since the text could become part of a page.
const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

/// A value as compact JSON; `None` if that has more than so many bytes. No more is written then.
pub(super) fn text(value: &impl Serialize, most: usize) -> Option<String> {
    let mut bytes = Bounded { bytes: Vec::new(), most };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, GoFormatter)).ok()?;
    String::from_utf8(bytes.bytes).ok()
}

struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{value:e}");
            // Go writes the sign of a positive exponent.
            let text = if text.contains("e-") { text } else { text.replace('e', "e+") };
            return writer.write_all(text.as_bytes());
        }
        write!(writer, "{value}")
    }

    /// What is too large for an integer is a float in Kubernetes.
    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        match i64::try_from(value) {
            Ok(integer) => self.write_i64(writer, integer),
            Err(_) => self.write_f64(writer, value as f64),
        }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for part in fragment.split_inclusive(ESCAPED) {
            let plain = part.trim_end_matches(ESCAPED);
            writer.write_all(plain.as_bytes())?;
            for escaped in part.chars().skip(plain.chars().count()) {
                write!(writer, "\\u{:04x}", u32::from(escaped))?;
            }
        }
        Ok(())
    }
}
