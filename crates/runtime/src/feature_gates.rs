//! Feature gates: `--feature-gates=Name=true,Other=false`.

use std::collections::BTreeMap;

/// A gate that a component knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name, case-sensitive.
    pub name: &'static str,
    /// Whether it is on when nobody says otherwise.
    pub default: bool,
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
        let mut gates = Self {
            on: known.iter().map(|gate| (gate.name, gate.default && gate.built)).collect(),
            not_built: Vec::new(),
        };
        for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            let (name, value) = text.split_once('=').ok_or_else(|| GateError::Malformed(text.into()))?;
            let on = parse_bool(value.trim()).ok_or_else(|| GateError::Malformed(text.into()))?;
            gates.switch(known, name.trim(), on)?;
        }
        Ok(gates)
    }

    fn switch(&mut self, known: &[Known], name: &str, on: bool) -> Result<(), GateError> {
        let Some(gate) = known.iter().find(|gate| gate.name == name) else {
            let known = known.iter().map(|gate| gate.name).collect::<Vec<_>>().join(", ");
            return Err(GateError::Unknown { name: name.into(), known });
        };
        if on && !gate.built {
            self.not_built.push(gate.name);
        }
        self.on.insert(gate.name, on && gate.built);
        Ok(())
    }

    /// Whether a gate is on. A gate that is not known is off.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        self.on.get(name).copied().unwrap_or(false)
    }
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
        Known { name: "Old", default: true, built: true },
        Known { name: "New", default: false, built: true },
        Known { name: "Later", default: false, built: false },
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
    fn a_gate_whose_feature_is_not_built_stays_off_and_is_told() {
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
