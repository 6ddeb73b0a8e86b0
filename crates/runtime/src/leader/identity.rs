//! The identity of a candidate in a lease.

/// `<host>_<uuid>`, as client-go's users write it: two processes of one host are two candidates.
#[must_use]
pub fn identity(host: &str) -> String {
    format!("{host}_{}", uuid(rand::random()))
}

/// A version 4 UUID of these bits.
fn uuid(random: u128) -> String {
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_host_and_a_uuid_of_version_4() {
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert!(identity("host").starts_with("host_"));
        assert_ne!(identity("host"), identity("host"));
    }
}
