use serde_json::json;

use super::*;

fn gvk(kind: &str) -> GroupVersionKind {
    match kind {
        "Job" => GroupVersionKind::gvk("batch", "v1", "Job"),
        other => GroupVersionKind::gvk("", "v1", other),
    }
}

fn rule(value: Value) -> ConditionRule {
    serde_json::from_value(value).unwrap()
}

fn budget() -> Budget {
    Budget::new(u64::MAX, u64::MAX)
}

/// The condition that a rule yields.
fn of(rule: Value, object: &Value, kind: &str) -> Option<RuleCondition> {
    let mut conditions = evaluate(&[serde_json::from_value(rule).unwrap()], object, &gvk(kind), &mut budget());
    assert!(conditions.len() < 2);
    conditions.pop()
}

fn cel(expressions: &[&str], message: &Value, object: &Value) -> [String; 3] {
    let mut rule = json!({"condition": "Ready", "type": "CEL", "celExpressions": expressions});
    ocm_apimachinery::merge::apply(&mut rule, message);
    let RuleCondition { type_, status, reason, message } = of(rule, object, "ConfigMap").unwrap();
    assert_eq!(type_, "Ready");
    [status.to_owned(), reason.to_owned(), message]
}

#[test]
fn all_expressions_must_be_true_and_the_first_that_is_not_ends_it() {
    let object = json!({"status": {"phase": "Done", "conditions": [{}]}});
    let cases: [(&[&str], &str, &str, &str); 9] = [
        (&["true"], "True", "ConditionRuleEvaluated", "The object is Ready"),
        (
            &["object.status.phase == 'Done'", "hasConditions(object.status)"],
            "True",
            "ConditionRuleEvaluated",
            "is Ready",
        ),
        (&["true", "false"], "False", "ConditionRuleEvaluated", "The object is not Ready"),
        (&["false", "object.none"], "False", "ConditionRuleEvaluated", "The object is not Ready"),
        (
            &["true", "object.none"],
            "False",
            "ConditionRuleExpressionError",
            "celExpressions[1]: there is no field none (line 1, column 7)",
        ),
        (
            &["1"],
            "False",
            "ConditionRuleExpressionError",
            "celExpressions[0]: the value has type int, and must be a bool",
        ),
        (&["object.status ="], "False", "ConditionRuleExpressionError", "unexpected character '=' (line 1, column 15)"),
        (&["result"], "False", "ConditionRuleExpressionError", "there is no variable result; known here: object"),
        (&[], "Unknown", "ConditionRuleInvalid", "the rule has no celExpressions"),
    ];
    for (expressions, status, reason, message) in cases {
        let found = cel(expressions, &json!({}), &object);
        assert_eq!([found[0].as_str(), found[1].as_str()], [status, reason], "{expressions:?}");
        assert!(found[2].contains(message), "{expressions:?}: {}", found[2]);
    }
}

#[test]
fn has_conditions_is_about_a_list_with_elements() {
    for (status, expected) in [
        (json!({"conditions": [1]}), "True"),
        (json!({"conditions": []}), "False"),
        (json!({"conditions": {"a": 1}}), "False"),
        (json!({}), "False"),
        (json!("text"), "False"),
        (json!(null), "False"),
    ] {
        assert_eq!(
            cel(&["hasConditions(object.status)"], &json!({}), &json!({"status": status}))[0],
            expected,
            "{status}"
        );
    }
}

#[test]
fn the_message_is_computed_or_given_or_names_the_condition() {
    let object = json!({"n": 3, "empty": ""});
    let both = |expression: &str| json!({"message": "given", "messageExpression": expression});
    let cases = [
        (json!({}), "The object is Ready"),
        (json!({"message": "given"}), "given"),
        (json!({"message": ""}), "The object is Ready"),
        (both("'n is ' + string(object.n) + (result ? '!' : '?')"), "n is 3!"),
        (both("object.empty"), "given"),
        (both(""), "given"),
        (json!({"messageExpression": "object.empty"}), "The object is Ready"),
        (both("object.none"), "messageExpression: there is no field none (line 1, column 7)"),
        (both("object.n"), "messageExpression: the value has type int, and must be a string"),
        (both("'a' +"), "messageExpression: expected a value, found the end of the expression (line 1, column 6)"),
    ];
    for (message, expected) in cases {
        let found = cel(&["true"], &message, &object);
        assert_eq!(found, ["True", "ConditionRuleEvaluated", expected].map(str::to_owned), "{message}");
    }
    let not = cel(&["false"], &json!({"messageExpression": "result ? 'yes' : 'no'"}), &object);
    assert_eq!((not[0].as_str(), not[2].as_str()), ("False", "no"));
}

#[test]
fn an_error_goes_before_any_message() {
    let found = cel(&["object.none"], &json!({"message": "given", "messageExpression": "'computed'"}), &json!({}));
    assert_eq!(found[2], "celExpressions[0]: there is no field none (line 1, column 7)");
}

#[test]
fn an_expression_costs_no_more_than_allowed() {
    let object = json!({"list": vec![1; 2_000]});
    let expensive = "object.list.all(x, object.list.all(y, y == x))";
    let found = cel(&[expensive], &json!({}), &object);
    assert_eq!(found[1], "ConditionRuleExpressionError");
    assert!(found[2].contains("costs more than the 1000000 units"), "{}", found[2]);
    let message = cel(&["true"], &json!({"messageExpression": format!("string({expensive})")}), &object);
    assert!(message[0] == "True" && message[2].contains("costs more than"), "{message:?}");
}

#[test]
fn all_rules_of_an_object_share_what_they_may_cost() {
    let object = json!({"list": vec![1; 10]});
    let rule = |n: usize| {
        rule(json!({"condition": format!("C{n}"), "type": "CEL", "celExpressions": ["object.list.all(x, x == 1)"]}))
    };
    let rules: Vec<_> = (0..5).map(rule).collect();
    let found = evaluate_within(&mut Budget::new(200, 100), &rules, &object, &gvk("ConfigMap"));
    let statuses: Vec<_> = found.iter().map(|condition| condition.status).collect();
    assert_eq!(statuses, ["True", "True", "False", "False", "False"]);
    assert!(
        found[4].message.contains("costs more than the 0 units that are left of the 200 for all"),
        "{}",
        found[4].message
    );
}

#[test]
fn a_job_is_complete_when_it_has_succeeded_or_failed() {
    let complete = json!({"condition": "Complete", "type": "WellKnownConditions"});
    let job = |type_: &str, status: &str| json!({"status": {"conditions": [{"type": "Other", "status": "True"}, {"type": type_, "status": status}]}});
    let cases = [
        (job("Complete", "True"), "True", "The job is finished"),
        (job("Failed", "True"), "True", "The job is finished"),
        (job("Complete", "False"), "False", "The job is not finished"),
        (job("Suspended", "True"), "False", "The job is not finished"),
        (json!({}), "False", "The job is not finished"),
    ];
    for (job, status, message) in cases {
        let found = of(complete.clone(), &job, "Job").unwrap();
        assert_eq!(
            (found.status, found.reason, found.message.as_str()),
            (status, "ConditionRuleEvaluated", message),
            "{job}"
        );
    }
}

#[test]
fn a_pod_is_complete_when_its_phase_is_a_last_one() {
    let complete = json!({"condition": "Complete", "type": "WellKnownConditions"});
    for (phase, status) in [("Succeeded", "True"), ("Failed", "True"), ("Running", "False"), ("Pending", "False")] {
        let found = of(complete.clone(), &json!({"status": {"phase": phase}}), "Pod").unwrap();
        assert_eq!((found.status, found.message), (status, format!("The phase of the pod is {phase}")));
    }
    assert_eq!(of(complete, &json!({}), "Pod").unwrap().status, "False");
}

#[test]
fn rules_about_what_is_not_known_yield_nothing() {
    for (condition, kind) in [("Progressing", "Job"), ("", "Job"), ("Complete", "ConfigMap")] {
        assert_eq!(of(json!({"condition": condition, "type": "WellKnownConditions"}), &json!({}), kind), None);
    }
}

#[test]
fn what_is_known_goes_before_a_message_and_a_message_expression_before_both() {
    let mut rule = json!({"condition": "Complete", "type": "WellKnownConditions", "message": "given"});
    assert_eq!(of(rule.clone(), &json!({}), "Job").unwrap().message, "The job is not finished");
    rule["messageExpression"] = json!("object.kind + (result ? ' done' : ' runs')");
    assert_eq!(of(rule, &json!({"kind": "Job"}), "Job").unwrap().message, "Job runs");
}

#[test]
fn a_rule_of_unknown_type_is_invalid_and_others_are_evaluated() {
    let rules = [
        rule(json!({"condition": "A", "type": "FromTheFuture"})),
        rule(json!({"condition": "B", "type": "CEL", "celExpressions": ["true"]})),
    ];
    let found = evaluate(&rules, &json!({}), &gvk("ConfigMap"), &mut budget());
    let outcomes: Vec<_> =
        found.iter().map(|condition| (condition.type_.as_str(), condition.status, condition.reason)).collect();
    assert_eq!(outcomes, [("A", "Unknown", "ConditionRuleInvalid"), ("B", "True", "ConditionRuleEvaluated")]);
}
