//! Whether the definitions of our kinds are installed, established, and serve every version that we use.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, api::Api};
use ocm_api::crds::{self, Side};

use super::model::Outcome;
use crate::client::Connection;

/// The command that installs the definitions of a side.
fn install(side: Side) -> &'static str {
    match side {
        Side::Hub => "ocm crds --hub | kubectl apply --server-side -f -",
        Side::Managed => "ocm crds --managed | kubectl apply --server-side -f -",
    }
}

/// Compares the definitions on a server with those of this version.
pub(super) async fn compare(server: &Connection, side: Side) -> Outcome {
    let expected = match crds::all() {
        Ok(all) => all.into_iter().filter(|crd| crd.side == side).map(|crd| crd.definition).collect::<Vec<_>>(),
        Err(error) => return Outcome::failed(error.to_string()),
    };
    match problems(&server.client, &expected).await {
        Ok(problems) => judge(side, &expected, &problems),
        Err(kube::Error::Api(status)) if status.code == 403 => by_discovery(server, side, &expected).await,
        Err(error) => Outcome::of_error(server, "read the CRDs", &error),
    }
}

async fn problems(client: &Client, expected: &[CustomResourceDefinition]) -> kube::Result<Vec<String>> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut problems = Vec::new();
    for expected in expected {
        let found = api.get_opt(name(expected)).await?;
        problems.extend(problem(expected, found.as_ref()));
    }
    Ok(problems)
}

/// What is wrong with a definition, if anything.
fn problem(expected: &CustomResourceDefinition, found: Option<&CustomResourceDefinition>) -> Option<String> {
    let name = name(expected);
    let Some(found) = found else { return Some(format!("{name} is missing")) };
    let conditions = found.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let established =
        conditions.clone().any(|condition| condition.type_ == "Established" && condition.status == "True");
    let refused =
        conditions.clone().find(|condition| condition.type_ == "NamesAccepted" && condition.status == "False");
    let served = served(found);
    let lacking: Vec<_> = self::served(expected).difference(&served).cloned().collect();
    if let Some(refused) = refused {
        Some(format!("{name} is not accepted: {}", refused.message.as_deref().unwrap_or_default()))
    } else if !established {
        Some(format!("{name} is not established"))
    } else if !lacking.is_empty() {
        Some(format!("{name} does not serve {}", lacking.join(", ")))
    } else {
        None
    }
}

fn name(crd: &CustomResourceDefinition) -> &str {
    crd.metadata.name.as_deref().unwrap_or_default()
}

fn served(crd: &CustomResourceDefinition) -> BTreeSet<String> {
    crd.spec.versions.iter().filter(|version| version.served).map(|version| version.name.clone()).collect()
}

fn judge(side: Side, expected: &[CustomResourceDefinition], problems: &[String]) -> Outcome {
    if !problems.is_empty() {
        let message = format!("{} of {} CRDs cannot be used: {}", problems.len(), expected.len(), problems.join("; "));
        return Outcome::failed(message).hint(install(side));
    }
    Outcome::ok(format!("{} CRDs are established, and serve {}", expected.len(), versions(expected)))
}

/// The versions of each API group.
fn versions(expected: &[CustomResourceDefinition]) -> String {
    let mut groups = BTreeMap::<_, BTreeSet<_>>::new();
    for crd in expected {
        groups.entry(crd.spec.group.as_str()).or_default().extend(served(crd));
    }
    let group = |(group, versions): (&&str, &BTreeSet<String>)| {
        format!("{group} {}", versions.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// Without the right to read definitions, discovery shows what is served.
async fn by_discovery(server: &Connection, side: Side, expected: &[CustomResourceDefinition]) -> Outcome {
    let mut problems = Vec::new();
    for crd in expected {
        for version in served(crd) {
            let group_version = format!("{}/{version}", crd.spec.group);
            match server.client.list_api_group_resources(&group_version).await {
                Ok(list) if list.resources.iter().any(|resource| resource.name == crd.spec.names.plural) => {}
                Ok(_) => problems.push(format!("{} does not serve {version}", name(crd))),
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    problems.push(format!("{} does not serve {version}", name(crd)));
                }
                Err(error) => return Outcome::of_error(server, &format!("list the kinds of {group_version}"), &error),
            }
        }
    }
    judge(side, expected, &problems)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crd(versions: &[&str], conditions: &Value) -> CustomResourceDefinition {
        let versions: Vec<_> =
            versions.iter().map(|name| json!({ "name": name, "served": true, "storage": false })).collect();
        serde_json::from_value(json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": { "kind": "Thing", "plural": "things" }, "versions": versions,
            },
            "status": { "conditions": conditions },
        }))
        .unwrap()
    }

    fn found(versions: &[&str], conditions: &Value) -> Option<String> {
        problem(&crd(&["v1", "v2"], &json!([])), Some(&crd(versions, conditions)))
    }

    #[test]
    fn a_definition_must_be_established_and_serve_every_version_that_we_use() {
        let established = json!([{ "type": "Established", "status": "True" }]);
        assert_eq!(problem(&crd(&["v1"], &json!([])), None).unwrap(), "things.example.com is missing");
        assert_eq!(found(&["v1", "v2", "v3"], &established), None);
        assert_eq!(found(&["v1"], &established).unwrap(), "things.example.com does not serve v2");
        assert_eq!(found(&["v1", "v2"], &json!([])).unwrap(), "things.example.com is not established");
        let refused = json!([{ "type": "NamesAccepted", "status": "False", "message": "taken" }]);
        assert_eq!(found(&["v1", "v2"], &refused).unwrap(), "things.example.com is not accepted: taken");
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_installs_it() {
        let expected = [crd(&["v1", "v2"], &json!([]))];
        let ok = judge(Side::Hub, &expected, &[]);
        assert_eq!(ok, Outcome::ok("1 CRDs are established, and serve example.com v1, v2"));
        let failed = judge(Side::Managed, &expected, &["x is missing".to_owned()]);
        assert_eq!(failed, Outcome::failed("1 of 1 CRDs cannot be used: x is missing").hint(install(Side::Managed)));
    }
}
