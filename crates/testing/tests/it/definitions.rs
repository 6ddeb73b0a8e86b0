//! A real API server accepts every definition of `crds/`, and returns objects as they were stored.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use ocm_apimachinery::yaml;
use ocm_testing::ControlPlane;
use serde_json::{Value, json};

/// The folders of the definitions, and of objects with every field.
const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");
const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/tests/it/fixtures");

#[tokio::test]
async fn every_definition_is_accepted_and_returns_objects_as_they_were_stored() -> Result<()> {
    // A plane of its own: no webhook converts add-ons here, which would break the garbage collector of a shared one.
    let plane = ControlPlane::builder().name("definitions").start().await?;
    let definitions: Vec<Value> = documents(DEFINITIONS)?;
    for definition in &definitions {
        plane.apply_yaml(&definition.to_string()).await?;
    }
    let accepted: Value = serde_json::from_str(&plane.kubectl(&["get", "crd", "-o", "json"]).await?)?;
    let accepted = accepted["items"].as_array().context("a list has items")?;
    assert_eq!(accepted.len(), definitions.len());
    for crd in accepted {
        for expected in ["Established", "NamesAccepted"] {
            assert_eq!(condition(crd, expected), "True", "{}", crd["metadata"]["name"]);
        }
        assert_ne!(condition(crd, "NonStructuralSchema"), "True", "{}", crd["metadata"]["name"]);
    }

    let client = plane.client().await?;
    for namespace in ["fleet", "shop-17"] {
        plane.kubectl(&["create", "namespace", namespace]).await?;
    }
    for (number, object) in documents(OBJECTS)?.iter().enumerate() {
        let crd = definitions.iter().find(|crd| crd["spec"]["names"]["kind"] == object["kind"]);
        let crd = crd.with_context(|| format!("no definition of {}", object["kind"]))?;
        if !is_usable(crd, &version(object)) {
            continue;
        }
        let kept = store(&client, crd, object, number).await.with_context(|| format!("failed to store {object}"))?;
        for part in ["spec", "status"] {
            let (kept, sent) = (&kept[part], &without_nulls(&object[part]));
            assert!(holds(kept, sent), "{} sent\n{sent}\nkept\n{kept}", object["kind"]);
            // Where an object shows every field there is nothing to add either.
            if object["metadata"]["name"] == "everything" {
                assert_eq!(kept, sent, "{}", object["kind"]);
            }
        }
    }
    Ok(())
}

/// Whether objects of this version can be stored without a conversion webhook.
fn is_usable(crd: &Value, version: &str) -> bool {
    let is_it = |there: &&Value| there["name"] == version && there["served"] == true;
    let found = crd["spec"]["versions"].as_array().into_iter().flatten().find(is_it);
    found.is_some_and(|found| found["storage"] == true || crd["spec"].get("conversion").is_none())
}

/// Creates an object under a name of its own, with its status, and reads it.
async fn store(client: &Client, crd: &Value, object: &Value, number: usize) -> Result<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = ApiResource {
        group: text(&crd["spec"]["group"]),
        version: version(object),
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        plural: text(&crd["spec"]["names"]["plural"]),
    };
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut new: DynamicObject = serde_json::from_value(without_nulls(object))?;
    new.metadata = ObjectMeta { name: Some(format!("{}-{number}", new.name_any())), ..ObjectMeta::default() };
    let mut created = api.create(&PostParams::default(), &new).await?;
    if let Some(status) = new.data.get("status") {
        created.data["status"] = status.clone();
        api.replace_status(&created.name_any(), &PostParams::default(), &created).await?;
    }
    Ok(serde_json::to_value(api.get(&created.name_any()).await?)?)
}

/// The YAML documents of a folder's files.
fn documents(folder: &str) -> Result<Vec<Value>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    let read = |path: &Path| -> Result<Vec<Value>> { Ok(yaml::from_str_multi(&fs::read_to_string(path)?)?) };
    Ok(files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn version(object: &Value) -> String {
    object["apiVersion"].as_str().and_then(|text| text.split('/').nth(1)).unwrap_or_default().to_owned()
}

fn condition<'a>(crd: &'a Value, name: &str) -> &'a str {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == name);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default()
}

/// Whether everything that was sent is there, except for defaults that the API server added.
fn holds(kept: &Value, sent: &Value) -> bool {
    match (kept, sent) {
        (Value::Object(kept), Value::Object(sent)) => {
            sent.iter().all(|(name, sent)| kept.get(name).is_some_and(|kept| holds(kept, sent)))
        }
        (Value::Array(kept), Value::Array(sent)) => {
            kept.len() == sent.len() && kept.iter().zip(sent).all(|(kept, sent)| holds(kept, sent))
        }
        (kept, sent) => kept == sent,
    }
}

/// An API server drops fields that are null, except where it keeps unknown fields.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null => json!(null),
        other => other.clone(),
    }
}
