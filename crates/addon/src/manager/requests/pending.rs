//! The certificate requests of one add-on that the manager may still approve or sign, by cluster: they are considered again
//! when the add-on changes there.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt as _;
use ocm_runtime::Change;

use super::is_open;
use crate::registration::approval;

/// By cluster and name of the request; with why it was last left to an administrator.
type Requests = BTreeMap<String, BTreeMap<String, Option<String>>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    requests: Mutex<Requests>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the requests.
    pub(super) fn record(&self, change: Change<'_, CertificateSigningRequest>) {
        if let Change::Updated { old, .. } | Change::Deleted(old) = change
            && let Some((cluster, _)) = approval::claimed(old)
        {
            let is_same = matches!(change, Change::Updated { new, .. } if approval::claimed(new) == approval::claimed(old) && is_open(new));
            if !is_same {
                self.remove(cluster, &old.name_any());
            }
        }
        if let Change::Updated { new, .. } | Change::Added(new) = change
            && is_open(new)
            && let Some((cluster, _)) = approval::claimed(new)
        {
            self.lock().entry(cluster.to_owned()).or_default().entry(new.name_any()).or_default();
        }
    }

    fn remove(&self, cluster: &str, name: &str) {
        if let Entry::Occupied(mut requests) = self.lock().entry(cluster.to_owned()) {
            requests.get_mut().remove(name);
            if requests.get().is_empty() {
                requests.remove();
            }
        }
    }

    /// Names of the requests of a cluster.
    pub(super) fn of(&self, cluster: &str) -> Vec<String> {
        self.lock().get(cluster).map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
    }

    /// Whether this reason is another one than last time.
    pub(super) fn is_new_reason(&self, cluster: &str, name: &str, reason: &str) -> bool {
        let mut requests = self.lock();
        let Some(known) = requests.get_mut(cluster).and_then(|requests| requests.get_mut(name)) else { return true };
        known.replace(reason.to_owned()).as_deref() != Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition;
    use ocm_api::labels;

    use super::*;

    fn request(cluster: &str) -> CertificateSigningRequest {
        let mut request = CertificateSigningRequest::default();
        request.metadata.name = Some("addon-x".into());
        request.labels_mut().insert(labels::CLUSTER_NAME.into(), cluster.into());
        request.labels_mut().insert(labels::ADDON_NAME.into(), "hello".into());
        request
    }

    #[test]
    fn a_request_is_pending_from_when_it_comes_until_it_is_decided_or_gone() {
        let pending = Pending::default();
        let (first, moved) = (Arc::new(request("c1")), Arc::new(request("c2")));
        pending.record(Change::Added(&first));
        assert_eq!(pending.of("c1"), ["addon-x"]);
        pending.record(Change::Updated { old: &first, new: &moved });
        assert_eq!((pending.of("c1"), pending.of("c2")), (vec![], vec!["addon-x".to_owned()]));
        let mut decided = request("c2");
        let condition = CertificateSigningRequestCondition { type_: "Denied".into(), ..Default::default() };
        decided.status.get_or_insert_default().conditions = Some(vec![condition]);
        pending.record(Change::Updated { old: &moved, new: &Arc::new(decided) });
        assert!(pending.of("c2").is_empty());
        pending.record(Change::Added(&first));
        pending.record(Change::Deleted(&first));
        assert!(pending.lock().is_empty());
    }

    #[test]
    fn a_reason_is_new_once() {
        let pending = Pending::default();
        let first = Arc::new(request("c1"));
        pending.record(Change::Added(&first));
        let is_new = |reason| pending.is_new_reason("c1", "addon-x", reason);
        assert_eq!([is_new("a"), is_new("a"), is_new("b")], [true, false, true]);
        pending.record(Change::Updated { old: &first, new: &first });
        assert!(!is_new("b"));
    }
}
