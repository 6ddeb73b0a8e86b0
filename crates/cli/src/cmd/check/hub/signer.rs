//! Whether something signs the certificates of agents: a kube-controller-manager with the signer
//! `kubernetes.io/kube-apiserver-client`.
//!
//! Requests of the last hour show it. Without any, only a request can: `--sign` makes one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    ByteString,
    api::{certificates::v1::CertificateSigningRequest, coordination::v1::Lease},
};
use kube::{
    Client,
    api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{conditions, signers};
use ocm_runtime::{
    Clock,
    clock::approximate,
    pki::{PrivateKey, Subject},
    write,
};
use tokio::time::{Instant, sleep};

use super::{
    super::model::Outcome,
    Hub, Sign,
    leases::{Holder, holder},
};
use crate::client::Connection;

/// The user of the test certificate, who has no rights; also the prefix of the request's name.
const USER: &str = "clusteradm-check";
/// The shortest validity that Kubernetes signs.
const VALID_SECONDS: i32 = 600;
/// How long the certificate may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the request's deletion may take, before the deadline of the command.
const RESERVE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(250);
/// How long signing an approved request may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
const FAILED: &str = "Failed";
const ENABLE: &str = "run a kube-controller-manager with --cluster-signing-cert-file and --cluster-signing-key-file, and with \
                      csrsigning among its --controllers; managed Kubernetes may not sign for this signer at all";

pub(super) async fn check(hub: &Hub) -> Outcome {
    match hub.sign {
        Sign::Yes => sign(hub).await,
        Sign::DryRun => Outcome::not_checked("because of --dry-run: --sign would create, approve and delete a request"),
        Sign::No => look(&hub.server).await,
    }
}

/// What the requests of the last hour show; Kubernetes deletes them after that.
#[derive(Debug, PartialEq, Eq)]
enum Evidence {
    Signed { name: String, approved: Timestamp },
    Unsigned { name: String, approved: Timestamp },
    Failed { name: String, cause: String },
    None,
}

async fn look(server: &Connection) -> Outcome {
    let of_signer = ListParams::default().fields(&format!("spec.signerName={}", signers::KUBE_API_SERVER_CLIENT));
    let requests = match Api::<CertificateSigningRequest>::all(server.client.clone()).list(&of_signer).await {
        Ok(list) => list.items,
        Err(error) => return Outcome::of_error(server, "list certificate requests", &error),
    };
    let now = Clock::System.now();
    match evidence(&requests, now) {
        Evidence::None => unknown(&manager(&server.client, now).await),
        evidence => judge(&evidence, now),
    }
}

/// The newest approved request decides.
fn evidence(requests: &[CertificateSigningRequest], now: Timestamp) -> Evidence {
    let approved = requests.iter().filter_map(|request| Some((approved(request)?, request)));
    let old_enough = |(time, request): &(Timestamp, &CertificateSigningRequest)| {
        is_signed(request) || failure(request).is_some() || now.duration_since(*time) > PATIENCE
    };
    let Some((approved, request)) = approved.filter(old_enough).max_by_key(|(time, _)| *time) else {
        return Evidence::None;
    };
    let name = request.metadata.name.clone().unwrap_or_default();
    match failure(request) {
        Some(cause) => Evidence::Failed { name, cause },
        None if is_signed(request) => Evidence::Signed { name, approved },
        None => Evidence::Unsigned { name, approved },
    }
}

fn is_signed(request: &CertificateSigningRequest) -> bool {
    request.status.as_ref().is_some_and(|status| status.certificate.is_some())
}

/// When it was approved.
fn approved(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let mut conditions = request.status.as_ref()?.conditions.iter().flatten();
    let approval = conditions.find(|condition| condition.type_ == conditions::csr::APPROVED)?;
    Some(approval.last_update_time.as_ref()?.0)
}

/// Why it was not signed, if the signer says so.
fn failure(request: &CertificateSigningRequest) -> Option<String> {
    let mut conditions = request.status.as_ref()?.conditions.iter().flatten();
    let failed = conditions.find(|condition| condition.type_ == FAILED)?;
    Some(failed.message.clone().or_else(|| failed.reason.clone()).unwrap_or_default())
}

fn judge(evidence: &Evidence, now: Timestamp) -> Outcome {
    let ago = |time: &Timestamp| approximate(now.duration_since(*time));
    match evidence {
        Evidence::Signed { name, approved } => Outcome::ok(format!("it signed {name}, approved {} ago", ago(approved))),
        Evidence::Unsigned { name, approved } => {
            let message = format!("{name} was approved {} ago, and nothing has signed it", ago(approved));
            Outcome::failed(message).hint(ENABLE)
        }
        Evidence::Failed { name, cause } => Outcome::failed(format!("the signer could not sign {name}: {cause}"))
            .hint(format!("kubectl describe certificatesigningrequest {name}")),
        Evidence::None => unknown(&Holder::None),
    }
}

/// The holder of the lease of kube-controller-manager.
async fn manager(client: &Client, now: Timestamp) -> Holder {
    let lease = Api::<Lease>::namespaced(client.clone(), "kube-system").get_opt("kube-controller-manager").await;
    // The lease is a hint only: without the right to read it, there is none.
    lease.ok().flatten().map_or(Holder::None, |lease| holder(&lease, now))
}

fn unknown(manager: &Holder) -> Outcome {
    let manager = match manager {
        Holder::Held { by, .. } => {
            format!("kube-controller-manager runs ({by}), but its flags decide whether it signs")
        }
        Holder::Expired { .. } | Holder::Released => "no kube-controller-manager holds its lease".to_owned(),
        Holder::None => "no lease of a kube-controller-manager can be seen".to_owned(),
    };
    Outcome::not_checked(format!("because no certificate was asked for in the last hour; {manager}"))
        .hint("clusteradm check hub --sign creates a request, approves it and deletes it")
}

/// Makes a request, approves it, waits for its certificate and deletes it.
async fn sign(hub: &Hub) -> Outcome {
    let requests = Api::<CertificateSigningRequest>::all(hub.server.client.clone());
    let request = match request() {
        Ok(request) => request,
        Err(message) => return Outcome::failed(message),
    };
    let created = match requests.create(&PostParams::default(), &request).await {
        Ok(created) => created,
        Err(error) => return Outcome::of_error(&hub.server, "create a certificate request", &error),
    };
    let name = created.metadata.name.clone().unwrap_or_default();
    let outcome = signed(hub, &requests, &created, &name).await;
    match requests.delete(&name, &DeleteParams::default()).await {
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
            let failure = hub.server.explain(&format!("delete certificate request {name}"), &error);
            let message = format!("{}; {}", outcome.message, failure.message());
            Outcome::failed(message).hint(format!("kubectl delete certificatesigningrequest {name}"))
        }
        _ => outcome,
    }
}

/// The key is never stored, so nobody can use the certificate.
fn request() -> Result<CertificateSigningRequest, String> {
    let pem = PrivateKey::generate().request(&Subject::new(USER, Vec::new())).map_err(|error| error.to_string())?;
    let mut request = CertificateSigningRequest::default();
    request.metadata.generate_name = Some(format!("{USER}-"));
    request.spec.request = ByteString(pem.into_bytes());
    request.spec.signer_name = signers::KUBE_API_SERVER_CLIENT.to_owned();
    request.spec.expiration_seconds = Some(VALID_SECONDS);
    request.spec.usages = Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec());
    Ok(request)
}

async fn signed(
    hub: &Hub,
    requests: &Api<CertificateSigningRequest>,
    created: &CertificateSigningRequest,
    name: &str,
) -> Outcome {
    let approval =
        Patch::Merge(write::approval(created, "ClusteradmCheck", "A test of the signer by clusteradm check hub"));
    if let Err(error) = requests.patch_approval(name, &PatchParams::default(), &approval).await {
        return Outcome::of_error(&hub.server, &format!("approve certificate request {name}"), &error);
    }
    let until = (Instant::now() + LIMIT).min(hub.deadline - RESERVE);
    loop {
        match requests.get(name).await {
            Ok(request) if is_signed(&request) => {
                return Outcome::ok(format!("it signed {name}, a test that is deleted again"));
            }
            Ok(request) if failure(&request).is_some() => {
                let cause = failure(&request).unwrap_or_default();
                return judge(&Evidence::Failed { name: name.to_owned(), cause }, Clock::System.now());
            }
            Ok(_) if Instant::now() < until => sleep(POLL).await,
            Ok(_) => {
                let message =
                    format!("nothing signed {name}, a test that is deleted again, before the end of the time");
                return Outcome::failed(message).hint(ENABLE);
            }
            Err(error) => return Outcome::of_error(&hub.server, &format!("read certificate request {name}"), &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::super::model::Verdict, *};

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().unwrap()
    }

    fn request(name: &str, approved: &str, more: &Value) -> CertificateSigningRequest {
        let mut status =
            json!({ "conditions": [{ "type": "Approved", "status": "True", "lastUpdateTime": approved }] });
        if let Some(condition) = more.get("failed") {
            let failed = json!({ "type": "Failed", "status": "True", "message": condition });
            status["conditions"].as_array_mut().unwrap().push(failed);
        }
        if more.get("certificate").is_some() {
            status["certificate"] = json!("eA==");
        }
        let spec = json!({ "request": "", "signerName": signers::KUBE_API_SERVER_CLIENT });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec, "status": status })).unwrap()
    }

    #[test]
    fn the_newest_request_that_was_approved_decides() {
        let signed = request("old", "2026-11-22T09:30:00Z", &json!({ "certificate": true }));
        let stuck = request("stuck", "2026-11-22T09:50:00Z", &json!({}));
        let fresh = request("fresh", "2026-11-22T09:59:30Z", &json!({}));
        let failed = request("failed", "2026-11-22T09:59:40Z", &json!({ "failed": "no key" }));
        let found = |requests: &[&CertificateSigningRequest]| {
            let requests: Vec<_> = requests.iter().map(|request| (*request).clone()).collect();
            match evidence(&requests, now()) {
                Evidence::None => None,
                evidence => Some(judge(&evidence, now())),
            }
        };
        assert_eq!(found(&[&signed]).unwrap(), Outcome::ok("it signed old, approved 30 minutes ago"));
        let unsigned = found(&[&stuck, &signed]).unwrap();
        assert_eq!(
            unsigned,
            Outcome::failed("stuck was approved 10 minutes ago, and nothing has signed it").hint(ENABLE)
        );
        assert_eq!(found(&[&signed, &fresh]).unwrap().verdict, Verdict::Ok, "a fresh one may be signed in a moment");
        assert_eq!(found(&[&signed, &failed]).unwrap().message, "the signer could not sign failed: no key");
        assert_eq!(found(&[&fresh]), None);
        assert_eq!(found(&[&CertificateSigningRequest::default()]), None);
    }

    #[test]
    fn without_requests_the_output_says_that_the_result_is_unknown() {
        let held = Holder::Held { by: "kcm".to_owned(), since: None };
        for (manager, word) in
            [(held, "runs (kcm)"), (Holder::Released, "holds its lease"), (Holder::None, "can be seen")]
        {
            let outcome = unknown(&manager);
            assert_eq!(outcome.verdict, Verdict::NotChecked);
            assert!(outcome.message.contains(word) && outcome.hint.clone().unwrap().contains("--sign"), "{outcome:?}");
        }
    }
}
