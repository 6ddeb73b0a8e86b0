//! Feature gates: `--feature-gates=Name=true,Other=false`.

use std::collections::BTreeMap;

/// A gate that a component knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name, case-sensitive.
    pub name: &'static str,
    /// Whether it is on by default.
    pub default: bool,
    /// The name that switches all gates of its stage, such as `AllAlpha`.
    pub stage: &'static str,
    /// Whether what it switches is built; if not, switching it on only earns a warning.
    pub built: bool,
}

/// Why gates were refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The name is not one of this component's.
    #[error("unknown feature gate {name:?}; this command knows {known}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The names that exist, for the message.
        known: String,
    },
    /// Not of the form `Name=true` or `Name=false`.
    #[error("feature gate {0:?} is not of the form Name=true or Name=false")]
    Malformed(String),
}

/// The gates of a process, switched.
#[derive(Clone, Debug, Default)]
pub struct FeatureGates {
    on: BTreeMap<&'static str, bool>,
    /// Gates that were switched on although what they switch is not built.
    pub not_built: Vec<&'static str>,
}

impl FeatureGates {
    /// Reads gates as given on a command line, each `Name=true` or `Name=false`.
    ///
    /// # Errors
    /// [`GateError`] for a name that is not in `known` and for a value that is neither.
    pub fn parse(known: &[Known], given: &[String]) -> Result<Self, GateError> {
        let given = given.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let switches = given.map(switch).collect::<Result<Vec<_>, _>>()?;
        // A gate that is named itself has the last word over its stage, in whatever order they are given.
        let (stages, names): (Vec<_>, Vec<_>) =
            switches.into_iter().partition(|(name, _)| known.iter().any(|gate| gate.stage == *name));
        let mut asked = BTreeMap::new();
        for (stage, on) in stages {
            asked.extend(known.iter().filter(|gate| gate.stage == stage).map(|gate| (gate.name, on)));
        }
        for (name, on) in names {
            asked.insert(find(known, name)?.name, on);
        }
        Ok(Self::of(known, &asked))
    }

    fn of(known: &[Known], asked: &BTreeMap<&'static str, bool>) -> Self {
        let asked = |gate: &Known| asked.get(gate.name).copied();
        let is_on = |gate: &Known| asked(gate).unwrap_or(gate.default) && gate.built;
        let not_built = known.iter().filter(|gate| !gate.built && asked(gate) == Some(true));
        Self {
            on: known.iter().map(|gate| (gate.name, is_on(gate))).collect(),
            not_built: not_built.map(|gate| gate.name).collect(),
        }
    }

    /// Whether a gate is on. A gate that is not known is off.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        self.on.get(name).copied().unwrap_or(false)
    }
}

fn switch(text: &str) -> Result<(&str, bool), GateError> {
    let malformed = || GateError::Malformed(text.into());
    let (name, value) = text.split_once('=').ok_or_else(malformed)?;
    Ok((name.trim(), parse_bool(value.trim()).ok_or_else(malformed)?))
}

fn find<'a>(known: &'a [Known], name: &str) -> Result<&'a Known, GateError> {
    known.iter().find(|gate| gate.name == name).ok_or_else(|| {
        let known = known.iter().map(|gate| gate.name).collect::<Vec<_>>().join(", ");
        GateError::Unknown { name: name.into(), known }
    })
}

/// As Go's `strconv.ParseBool` reads them, since that is what the flag took so far.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        Known { name: "Old", default: true, stage: "AllBeta", built: true },
        Known { name: "New", default: false, stage: "AllAlpha", built: true },
        Known { name: "Later", default: false, stage: "AllAlpha", built: false },
    ];

    fn parse(given: &[&str]) -> Result<FeatureGates, GateError> {
        FeatureGates::parse(KNOWN, &given.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_hold_until_switched() {
        let gates = parse(&["New=true"]).unwrap();
        assert!(gates.enabled("Old") && gates.enabled("New") && !gates.enabled("Later"));
        assert!(!parse(&["Old=false"]).unwrap().enabled("Old"));
    }

    #[test]
    fn a_stage_switches_all_its_gates_but_those_that_are_named() {
        let gates = parse(&["New=false", "AllAlpha=true"]).unwrap();
        assert!(gates.enabled("Old") && !gates.enabled("New"));
        assert_eq!(gates.not_built, ["Later"]);
        assert!(!parse(&["AllBeta=false"]).unwrap().enabled("Old"));
        assert_eq!(parse(&["AllAlpha=true", "Later=false"]).unwrap().not_built, [""; 0]);
    }

    #[test]
    fn a_gate_whose_feature_is_not_built_stays_off_and_is_logged() {
        let gates = parse(&["Later=true"]).unwrap();
        assert!(!gates.enabled("Later"));
        assert_eq!(gates.not_built, ["Later"]);
    }

    #[test]
    fn unknown_names_and_other_values_are_refused() {
        let error = parse(&["Odd=true"]).unwrap_err().to_string();
        assert_eq!(error, r#"unknown feature gate "Odd"; this command knows Old, New, Later"#);
        assert!(matches!(parse(&["Old=maybe"]), Err(GateError::Malformed(_))));
        assert!(matches!(parse(&["Old"]), Err(GateError::Malformed(_))));
    }
}
