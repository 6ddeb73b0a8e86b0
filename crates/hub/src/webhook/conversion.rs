//! ConversionReviews: what an API server asks, and what it is answered.

use kube::core::{
    Status,
    conversion::{ConversionRequest, ConversionResponse, ConversionReview},
};
use ocm_api::addon::convert::convert;
use serde_json::Value;

use super::review::{self, Answer, Review, ReviewError};

const REVIEW: Review = Review { group: "apiextensions.k8s.io", kind: "ConversionReview" };
/// Why an object was not converted, for programs.
const REASON: &str = "ConversionFailed";

/// Answers a review: with all objects converted, in their order, or with none and the object that could not be.
///
/// # Errors
/// [`ReviewError`] when the request is no review.
pub fn answer(body: &[u8]) -> Result<Answer, ReviewError> {
    let mut request = read(body)?;
    let objects = std::mem::take(&mut request.objects);
    let outcome = convert_all(objects, &request.desired_api_version);
    let response = ConversionResponse::for_request(request);
    let (response, failure) = match outcome {
        Ok(objects) => (response.success(objects), None),
        Err(failure) => (response.failure(Status::failure(&failure, REASON)), Some(failure)),
    };
    Ok(Answer { body: review::json(&response.into_review())?, failure })
}

fn read(body: &[u8]) -> Result<ConversionRequest, ReviewError> {
    let review: ConversionReview = REVIEW.read(body)?;
    REVIEW.check(&review.types)?;
    ConversionRequest::from_review(review).map_err(|_| REVIEW.no_request())
}

/// All or nothing, as the API server wants it.
fn convert_all(objects: Vec<Value>, to: &str) -> Result<Vec<Value>, String> {
    let converted = objects.into_iter().enumerate().map(|(index, object)| {
        let name = name(&object, index);
        convert(object, to).map_err(|error| format!("failed to convert {name} to {to}: {error}"))
    });
    converted.collect()
}

/// An object for people: its kind, namespace and name, or its position.
fn name(object: &Value, index: usize) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    match (text("/kind"), text("/metadata/namespace"), text("/metadata/name")) {
        (Some(kind), Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (Some(kind), None, Some(name)) => format!("{kind} {name}"),
        _ => format!("object {index}"),
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::webhooks::REVIEW_VERSIONS;
    use serde_json::json;

    use super::*;

    const GROUP: &str = REVIEW.group;
    const KIND: &str = REVIEW.kind;
    const V1ALPHA1: &str = "addon.open-cluster-management.io/v1alpha1";
    const V1BETA1: &str = "addon.open-cluster-management.io/v1beta1";

    fn addon(name: &str, spec: &Value) -> Value {
        let metadata = json!({ "name": name, "namespace": "cluster1" });
        json!({ "apiVersion": V1ALPHA1, "kind": "ManagedClusterAddOn", "metadata": metadata, "spec": spec })
    }

    fn ask(version: &str, to: &str, objects: &[Value]) -> Vec<u8> {
        let request = json!({ "uid": "42", "desiredAPIVersion": to, "objects": objects });
        let review = json!({ "apiVersion": format!("{GROUP}/{version}"), "kind": KIND, "request": request });
        review.to_string().into_bytes()
    }

    fn reply(body: &[u8]) -> Value {
        serde_json::from_slice(&answer(body).unwrap().body).unwrap()
    }

    #[test]
    fn a_review_is_answered_in_its_own_version_with_all_objects_in_their_order() {
        for version in REVIEW_VERSIONS {
            let objects = [addon("a", &json!({ "installNamespace": "x" })), addon("b", &json!({}))];
            let reply = reply(&ask(version, V1BETA1, &objects));
            assert_eq!(reply["apiVersion"], format!("{GROUP}/{version}"));
            assert_eq!((&reply["kind"], &reply["response"]["uid"]), (&json!(KIND), &json!("42")));
            assert_eq!(reply["response"]["result"]["status"], "Success");
            assert!(reply.get("request").is_none());
            let converted = reply["response"]["convertedObjects"].as_array().unwrap();
            let names: Vec<_> = converted.iter().map(|object| &object["metadata"]["name"]).collect();
            assert_eq!(names, ["a", "b"]);
            assert!(converted.iter().all(|object| object["apiVersion"] == V1BETA1));
        }
    }

    #[test]
    fn one_object_that_cannot_be_converted_fails_the_whole_answer_and_is_named() {
        let objects = [addon("good", &json!({})), addon("bad", &json!({ "installNamespace": 3 }))];
        let body = ask("v1", V1BETA1, &objects);
        let reply = reply(&body);
        let result = &reply["response"]["result"];
        assert_eq!((&result["status"], &reply["response"]["uid"]), (&json!("Failure"), &json!("42")));
        assert_eq!(reply["response"]["convertedObjects"], json!([]));
        let message = result["message"].as_str().unwrap();
        assert!(message.contains("ManagedClusterAddOn cluster1/bad"), "{message}");
        assert!(message.contains("spec.installNamespace is not a string"), "{message}");
        assert_eq!(answer(&body).unwrap().failure.as_deref(), Some(message));
    }

    #[test]
    fn an_object_without_a_name_is_named_by_its_position() {
        let failure = answer(&ask("v1", V1BETA1, &[addon("a", &json!({})), json!(7)])).unwrap().failure.unwrap();
        assert!(failure.contains("object 1"), "{failure}");
    }

    #[test]
    fn a_review_of_nothing_is_answered_with_nothing() {
        let reply = reply(&ask("v1", V1BETA1, &[]));
        assert_eq!(reply["response"]["result"]["status"], "Success");
        assert_eq!(reply["response"]["convertedObjects"], json!([]));
    }

    #[test]
    fn a_version_nobody_knows_is_a_failure() {
        let failure = answer(&ask("v1", "example.com/v9", &[addon("a", &json!({}))])).unwrap().failure.unwrap();
        assert!(failure.contains("example.com/v9"), "{failure}");
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let said = |body: &[u8]| answer(body).unwrap_err().to_string();
        assert!(said(b"{").contains("is no ConversionReview"));
        assert!(said(b"[]").contains("is no ConversionReview"));
        assert!(said(&"[".repeat(100_000).into_bytes()).contains("is no ConversionReview"));
        let other = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview" });
        assert!(said(other.to_string().as_bytes()).contains("AdmissionReview of admission.k8s.io/v1"));
        assert!(said(&ask("v2", V1BETA1, &[])).contains("apiextensions.k8s.io/v2"));
        let empty = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": KIND });
        assert!(said(empty.to_string().as_bytes()).contains("has no request"));
    }
}
