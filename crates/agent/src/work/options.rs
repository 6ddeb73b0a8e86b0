//! What a work asks for each of its objects: those of `spec.manifestConfigs` that select it.

use std::sync::Arc;

use ocm_api::work::v1::{
    ConditionRule, FeedbackRule, FeedbackScrapeType, ManifestConfigOption, ResourceIdentifier, UpdateStrategy,
};

/// The settings for one object. Objects selected by the same entry share its rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ManifestOptions {
    /// How the object is written.
    pub strategy: Arc<UpdateStrategy>,
    /// Which entry says so, for messages.
    pub strategy_at: Option<usize>,
    /// Which values of it are reported.
    pub feedback_rules: Arc<[FeedbackRule]>,
    /// Which entry of `spec.manifestConfigs` these rules are from, for messages.
    pub feedback_at: usize,
    /// Which conditions are computed from it.
    pub condition_rules: Arc<[ConditionRule]>,
    /// How the object is followed for both.
    pub scrape_type: FeedbackScrapeType,
}

/// `spec.manifestConfigs` of a work, from which the settings of its objects are taken.
#[derive(Debug)]
pub(super) struct ManifestConfigs(Vec<Config>);

#[derive(Debug)]
struct Config {
    pattern: ResourceIdentifier,
    strategy: Option<Arc<UpdateStrategy>>,
    feedback_rules: Arc<[FeedbackRule]>,
    condition_rules: Arc<[ConditionRule]>,
    scrape_type: Option<FeedbackScrapeType>,
}

impl From<Vec<ManifestConfigOption>> for ManifestConfigs {
    fn from(configs: Vec<ManifestConfigOption>) -> Self {
        let config = |config: ManifestConfigOption| Config {
            pattern: config.resource_identifier,
            strategy: config.update_strategy.map(Arc::new),
            feedback_rules: config.feedback_rules.into(),
            condition_rules: config.condition_rules.into(),
            scrape_type: config.feedback_scrape_type,
        };
        Self(configs.into_iter().map(config).collect())
    }
}

impl ManifestConfigs {
    /// Of the entries that select the object, the first that has a setting decides on it. How the object is followed is
    /// decided by the last entry, as in OCM.
    pub(super) fn options(&self, id: &ResourceIdentifier) -> ManifestOptions {
        let selecting = || self.0.iter().enumerate().filter(|(_, config)| selects(&config.pattern, id));
        let strategy = selecting().find_map(|(at, config)| Some((at, config.strategy.clone()?)));
        let feedback = selecting().find(|(_, config)| !config.feedback_rules.is_empty());
        let conditions = selecting().find(|(_, config)| !config.condition_rules.is_empty());
        let scrape_type = selecting().next_back().and_then(|(_, config)| config.scrape_type.clone());
        ManifestOptions {
            strategy_at: strategy.as_ref().map(|(at, _)| *at),
            strategy: strategy.map(|(_, strategy)| strategy).unwrap_or_default(),
            feedback_rules: feedback.map(|(_, config)| config.feedback_rules.clone()).unwrap_or_default(),
            feedback_at: feedback.map(|(at, _)| at).unwrap_or_default(),
            condition_rules: conditions.map(|(_, config)| config.condition_rules.clone()).unwrap_or_default(),
            scrape_type: scrape_type.unwrap_or_default(),
        }
    }
}

/// How an object is written, as [`ManifestConfigs::options`] decides; `None` by default.
pub(super) fn strategy<'a>(configs: &'a [ManifestConfigOption], id: &ResourceIdentifier) -> Option<&'a UpdateStrategy> {
    let mut selecting = configs.iter().filter(|config| selects(&config.resource_identifier, id));
    selecting.find_map(|config| config.update_strategy.as_ref())
}

impl ManifestOptions {
    /// The same, with nothing computed from the object.
    pub(super) fn without_rules(self) -> Self {
        Self { feedback_rules: Arc::default(), condition_rules: Arc::default(), ..self }
    }

    /// Whether anything is computed from the object, so that all of it has to be read.
    pub(super) fn has_rules(&self) -> bool {
        !self.feedback_rules.is_empty() || !self.condition_rules.is_empty()
    }

    /// Whether the object is watched, so that what is computed from it follows each change.
    pub(super) fn is_watched(&self) -> bool {
        self.has_rules() && self.scrape_type == FeedbackScrapeType::Watch
    }
}

fn selects(pattern: &ResourceIdentifier, id: &ResourceIdentifier) -> bool {
    pattern.group == id.group
        && pattern.resource == id.resource
        && matches(&pattern.namespace, &id.namespace)
        && matches(&pattern.name, &id.name)
}

/// Whether a text is as in a pattern, in which each `*` may be any text, also none.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((prefix, rest)) = pattern.split_once('*') else { return pattern == text };
    let (inner, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
    let between = text.strip_prefix(prefix).and_then(|text| text.strip_suffix(suffix));
    // The leftmost place of each part leaves the most for those that follow.
    let after = |text: &'_ str, part: &str| text.find(part).map(|start| start + part.len());
    between.is_some_and(|mut text| {
        inner.split('*').all(|part| after(text, part).and_then(|end| text.get(end..)).map(|rest| text = rest).is_some())
    })
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, proptest};
    use serde_json::{Value, json};

    use super::*;

    fn options(configs: &Value) -> ManifestOptions {
        let configs: Vec<ManifestConfigOption> = serde_json::from_value(configs.clone()).unwrap();
        let id = json!({"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web-1"});
        ManifestConfigs::from(configs).options(&serde_json::from_value(id).unwrap())
    }

    fn config(namespace: &str, name: &str, settings: &Value) -> Value {
        let mut config = settings.clone();
        config["resourceIdentifier"] =
            json!({"group": "apps", "resource": "deployments", "namespace": namespace, "name": name});
        config
    }

    #[test]
    fn the_first_entry_with_a_setting_decides_and_the_last_on_how_the_object_is_followed() {
        let of =
            |strategy: &str, scrape: &str| json!({"updateStrategy": {"type": strategy}, "feedbackScrapeType": scrape});
        let feedback = json!({"feedbackRules": [{"type": "WellKnownStatus"}]});
        let found = options(&json!([
            config("other", "web-1", &of("ReadOnly", "Watch")),
            config("shop", "*", &feedback),
            config("shop", "web-*", &of("CreateOnly", "Watch")),
            config("*", "web-1", &of("ServerSideApply", "Poll")),
        ]));
        assert_eq!((found.strategy.type_.to_string().as_str(), found.strategy_at), ("CreateOnly", Some(2)));
        assert_eq!((found.feedback_rules.len(), found.scrape_type), (1, FeedbackScrapeType::Poll));
        assert_eq!(options(&json!([])), ManifestOptions::default());
    }

    #[test]
    fn objects_that_one_entry_selects_share_its_rules() {
        let rules = json!({"feedbackRules": [{"type": "WellKnownStatus"}], "conditionRules": [{"type": "WellKnownConditions", "condition": "Complete"}],
            "updateStrategy": {"type": "CreateOnly"}});
        let configs: Vec<ManifestConfigOption> = serde_json::from_value(json!([config("shop", "*", &rules)])).unwrap();
        let id = |name: &str| ResourceIdentifier { name: name.into(), ..configs[0].resource_identifier.clone() };
        assert_eq!(strategy(&configs, &id("a")).map(|strategy| strategy.type_.to_string()), Some("CreateOnly".into()));
        let shared = ManifestConfigs::from(configs.clone());
        let (a, b) = (shared.options(&id("a")), shared.options(&id("b")));
        assert!(a.has_rules() && Arc::ptr_eq(&a.strategy, &b.strategy));
        assert!(
            Arc::ptr_eq(&a.feedback_rules, &b.feedback_rules) && Arc::ptr_eq(&a.condition_rules, &b.condition_rules)
        );
    }

    #[test]
    fn group_and_resource_are_compared_exactly() {
        for (field, other) in [("group", ""), ("group", "*"), ("resource", "deploy*"), ("resource", "*")] {
            let mut config = config("*", "*", &json!({"updateStrategy": {"type": "ReadOnly"}}));
            config["resourceIdentifier"][field] = json!(other);
            assert_eq!(options(&json!([config])), ManifestOptions::default(), "{field} {other}");
        }
    }

    #[test]
    fn an_asterisk_is_any_text() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*b*c", "aXbYc"),
            ("*a*a", "aa"),
            ("**", "x"),
            ("", ""),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*a", "a"), ("a*b*c", "acb"), ("*a*a", "a"), ("a.c", "abc")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_as_in_each_pattern_that_was_made_from_it(parts in prop::collection::vec("[a-c]{0,2}", 1..5), fill in "[a-c]{0,3}") {
            prop_assert!(matches(&parts.join("*"), &parts.join(&fill)));
        }
    }
}
