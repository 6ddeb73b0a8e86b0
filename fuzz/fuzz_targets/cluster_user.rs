//! Names of users, as certificates carry them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_api::identities;

fuzz_target!(|user: &str| {
    if let Some((cluster, agent)) = identities::parse_cluster_user(user) {
        assert_eq!(identities::cluster_user(cluster, agent), user);
    }
});
