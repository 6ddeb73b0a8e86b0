//! What the hub sends about tokens of add-ons: the message that names a service account, and tokens. The first line is the
//! message; the rest is a token, or the claims of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_agent::registration::addon::fuzzing::{check_token, token_of, uid_in};

fuzz_target!(|text: &str| {
    let (message, rest) = text.split_once('\n').unwrap_or((text, ""));
    let uid = uid_in(message).unwrap_or("1234");
    assert_eq!(uid_in(&format!("ServiceAccount c1/hello-agent (UID: {uid}) is ready")), Some(uid));
    for token in [rest.to_owned(), token_of(rest.as_bytes())] {
        for now in [-1_000_000_000, 0, 1_700_000_000, 4_000_000_000] {
            let Some((renew_in, expires)) = check_token(&token, uid, now) else { continue };
            assert!(!renew_in.is_zero() && expires >= now, "{token}");
        }
    }
});
