//! Digests as text.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of the bytes, in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::sha256_hex;

    #[test]
    fn a_digest_has_two_digits_for_each_byte() {
        // The example of the standard, FIPS 180-4.
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
