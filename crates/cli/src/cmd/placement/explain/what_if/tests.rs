use serde_json::{from_value, json};

use super::*;

fn objects() -> HubObjects {
    let cluster = json!({
        "metadata": {"name": "c1", "labels": {"env": "dev"}},
        "spec": {"hubAcceptsClient": true, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSelect"}]},
        "status": {"clusterClaims": [{"name": "region", "value": "eu"}]},
    });
    HubObjects {
        placement: from_value(json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {}})).unwrap(),
        clusters: vec![from_value(cluster).unwrap()],
        sets: vec![],
        bindings: vec![],
        decisions: vec![],
        scores: vec![],
    }
}

fn applied(arguments: &[&str]) -> HubObjects {
    let mut objects = objects();
    for argument in arguments {
        parse(argument).unwrap().apply(&mut objects, Timestamp::UNIX_EPOCH).unwrap();
    }
    objects
}

#[test]
fn labels_and_claims_are_set_and_removed() {
    let objects = applied(&["c1:label:env-", "c1:label:example.com/tier=web", "c1:claim:region-", "c1:claim:id=a:b=c"]);
    let cluster = &objects.clusters[0];
    assert_eq!(*cluster.labels(), [("example.com/tier".to_owned(), "web".to_owned())].into());
    let claims = &cluster.status.as_ref().unwrap().cluster_claims;
    assert_eq!(*claims, [ManagedClusterClaim { name: "id".into(), value: "a:b=c".into() }]);
}

#[test]
fn taints_are_set_and_removed_as_with_kubectl() {
    let taints = |arguments: &[&str]| {
        let objects = applied(arguments);
        objects.clusters[0].spec.taints.iter().map(ocm_scheduler::taint_as_text).collect::<Vec<_>>()
    };
    assert_eq!(taints(&["c1:taint:old:NoSelectIfNew"]), ["gpu=yes:NoSelect", "old:NoSelectIfNew"]);
    assert_eq!(taints(&["c1:taint:gpu=no:NoSelect"]), ["gpu=no:NoSelect"]);
    for removal in ["gpu-", "gpu:NoSelect-", "gpu=yes:NoSelect-", "gpu=yes-"] {
        assert_eq!(taints(&[&format!("c1:taint:{removal}")]), [""; 0], "{removal}");
    }
    let added = applied(&["c1:taint:a=b:NoSelect"]).clusters[0].spec.taints[1].time_added.clone();
    assert_eq!(added, Some(Time(Timestamp::UNIX_EPOCH)));
}

#[test]
fn scores_are_set_and_removed_also_where_an_add_on_gives_none() {
    let objects =
        applied(&["c1:score:usage/cpu=70", "c1:score:usage/cpu=-5", "c1:score:usage/gpu=1", "c1:score:usage/gpu-"]);
    let [object] = objects.scores.as_slice() else { panic!("{:?}", objects.scores) };
    assert_eq!((object.name_any(), object.namespace()), ("usage".into(), Some("c1".into())));
    let scores = &object.status.as_ref().unwrap().scores;
    assert_eq!(*scores, [AddOnPlacementScoreItem { name: "cpu".into(), value: -5 }]);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    for (argument, reason) in [
        ("c1", "write CLUSTER:KIND:CHANGE"),
        ("c1:label", "write CLUSTER:KIND:CHANGE"),
        (":label:a=b", "the name of the cluster"),
        ("c1:color:a=b", "\"color\" is not known"),
        ("c1:label:env", "write KEY=VALUE, or KEY-"),
        ("c1:label:=x", "the key is empty"),
        ("c1:label:a b=x", "is not a valid key"),
        ("c1:label:a=x y", "is not a valid label value"),
        ("c1:taint:gpu", "write KEY=VALUE:EFFECT"),
        ("c1:taint:gpu:NoSchedule", "\"NoSchedule\" is not a valid effect"),
        ("c1:taint:=x:NoSelect", "is not a valid key"),
        ("c1:score:usage=1", "write OBJECT/NAME=NUMBER"),
        ("c1:score:usage/cpu=101", "\"101\" is not a valid score"),
    ] {
        let error = parse(argument).unwrap_err();
        assert!(error.contains(reason), "{argument}: {error}");
    }
}

#[test]
fn a_cluster_that_does_not_exist_and_a_removal_of_nothing_name_the_argument() {
    let failure =
        |argument: &str| parse(argument).unwrap().apply(&mut objects(), Timestamp::UNIX_EPOCH).unwrap_err().to_string();
    assert!(failure("c2:label:a=b").starts_with("error: --what-if c2:label:a=b: cluster c2 does not exist\nhint: "));
    for removal in ["label:tier-", "claim:id-", "taint:old-", "taint:gpu=no:NoSelect-", "score:usage/cpu-"] {
        let failure = failure(&format!("c1:{removal}"));
        assert!(failure.starts_with(&format!("error: --what-if c1:{removal}: there is no such label")), "{failure}");
    }
}
