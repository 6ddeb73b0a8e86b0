//! The status of an add-on, as a manager and a cluster's agent write it for one another: the manager gives rights to the
//! add-on's own agent and to nobody else, and the cluster's agent keeps certificates and tokens apart.
#![no_main]

use std::{collections::BTreeSet, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use ocm_addon::{Identity, fuzzing::registration};
use ocm_agent::registration::addon::fuzzing::{NAMESPACE, credentials};
use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn},
    identities, secrets,
};
use ocm_apimachinery::labels::is_dns_name;
use ocm_runtime::pki::{self, PrivateKey};

static KEY: LazyLock<PrivateKey> = LazyLock::new(PrivateKey::generate);

fuzz_target!(|data: &[u8]| {
    let Ok(addon) = serde_json::from_slice::<ManagedClusterAddOn>(data) else { return };
    let kept = serde_json::to_value(&addon).expect("a cache can keep it");
    assert_eq!(serde_json::from_value::<ManagedClusterAddOn>(kept).expect("what is kept can be read"), addon);
    check_manager(&addon);
    check_agent(&addon, KubeClientDriver::Csr);
    check_agent(&addon, KubeClientDriver::Token);
});

fn check_manager(addon: &ManagedClusterAddOn) {
    let Some(status) = &addon.status else { return };
    let own = Identity::of_agent("c1", "hello", "agent");
    let account = Identity::new(identities::addon_account_user("c1", "hello"), Vec::new());
    let (registrations, identity, fault) = registration(status, ("c1", "hello"), own.clone());
    assert_eq!(registrations.len(), 1);
    assert!(fault.is_none() || identity.is_none());
    assert_ne!(fault, Some(String::new()));
    if let Some(identity) = identity {
        assert!(identity == own || identity == account, "{identity:?}");
        let subject = registrations[0].subject.as_ref().expect("rights are for somebody");
        assert_eq!(subject.user, identity.user);
        assert_eq!(subject.groups, identity.groups);
    }
}

fn check_agent(addon: &ManagedClusterAddOn, driver: KubeClientDriver) {
    let (credentials, refused) = credentials(addon, driver);
    assert!(refused.iter().all(|cause| !cause.is_empty()));
    let account = addon.metadata.name.as_deref().map(|name| identities::addon_account_user("c1", name));
    let mut seen = BTreeSet::new();
    for (secret, subject) in credentials {
        assert!(is_dns_name(&secret.name) && is_dns_name(&secret.namespace), "{secret}");
        assert!(secret.namespace != NAMESPACE || secret.name != secrets::HUB_KUBECONFIG);
        assert!(secret.namespace != NAMESPACE || secret.name != secrets::BOOTSTRAP_HUB_KUBECONFIG);
        assert!(seen.insert((secret.namespace, secret.name.clone())));
        let Some(subject) = subject else { continue };
        assert!(secret.name.ends_with("-client-cert") || Some(&subject.common_name) != account.as_ref());
        // Some subjects fit into no request.
        let Ok(request) = KEY.request(&subject) else { continue };
        let read_back = pki::parse_request(request.as_bytes()).expect("what is asked can be read");
        assert!(read_back.is_same_as(&subject), "{subject:?} became {read_back:?}");
    }
}
