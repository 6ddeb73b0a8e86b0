//! Certificate signing requests, as any agent may send them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(subject) = ocm_runtime::pki::parse_request(data) {
        // What is read as the identity of an agent must be one, and nothing else.
        let agent = ocm_api::identities::agent_of("c1", &subject.common_name, &subject.organizations);
        if agent.is_ok() {
            assert!(subject.organizations.iter().all(|group| group.starts_with("system:open-cluster-management:")));
        }
    }
});
