//! Approving certificate signing requests.

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{describe, name_of};
use crate::error::{Result, ResultExt as _};

/// The merge patch that approves a request as it was read, and no other: it adds condition `Approved`.
#[must_use]
pub fn approval(request: &CertificateSigningRequest, reason: &str, message: &str) -> Value {
    let mut conditions = request.status.clone().and_then(|status| status.conditions).unwrap_or_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: "Approved".into(),
        status: "True".into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        ..CertificateSigningRequestCondition::default()
    });
    let meta = &request.metadata;
    json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": conditions},
    })
}

/// Sends an [`approval`] of a request; returns the request as the server now has it.
///
/// # Errors
/// [`crate::Error::Request`]; a conflict if the request was changed or replaced after it was read.
pub async fn approve(
    api: &Api<CertificateSigningRequest>,
    request: &CertificateSigningRequest,
    approval: &Value,
) -> Result<CertificateSigningRequest> {
    let approved = api.patch_approval(name_of(request)?, &PatchParams::default(), &Patch::Merge(approval)).await;
    approved.while_trying_to("approve", || describe(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_keeps_other_conditions_and_is_guarded_by_uid_and_resource_version() {
        let request = serde_json::from_value(json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"},
            "spec": {"request": "", "signerName": "s"},
            "status": {"conditions": [{"type": "Other", "status": "True"}]},
        }));
        assert_eq!(
            approval(&request.unwrap(), "Because", "It is known."),
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7"},
                "status": {"conditions": [
                    {"type": "Other", "status": "True"},
                    {"type": "Approved", "status": "True", "reason": "Because", "message": "It is known."},
                ]},
            })
        );
    }
}
