//! Where selected values are.

use std::collections::HashSet;

use serde_json::Value;

use crate::budget::{Exceeded, Units};

/// A search for the JSON pointers of values.
pub(super) struct Pointers {
    pub addresses: HashSet<*const Value>,
    /// The pointer of the value at hand.
    pub here: String,
    pub found: Vec<String>,
}

impl Pointers {
    /// Searches a value and all that is in it. Pointers are copied, and those of deep values can be long.
    pub(super) fn search(&mut self, value: &Value, units: &mut Units) -> Result<(), Exceeded> {
        units.charge(1)?;
        if self.addresses.contains(&std::ptr::from_ref(value)) {
            units.charge_bytes(self.here.len())?;
            self.found.push(self.here.clone());
        }
        match value {
            Value::Object(fields) => fields.iter().try_for_each(|(key, inner)| self.below(key, inner, units)),
            Value::Array(list) => {
                list.iter().enumerate().try_for_each(|(index, inner)| self.below(&index.to_string(), inner, units))
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, key: &str, inner: &Value, units: &mut Units) -> Result<(), Exceeded> {
        units.charge_bytes(key.len())?;
        let length = self.here.len();
        self.here.push('/');
        self.here.push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.search(inner, units)?;
        self.here.truncate(length);
        Ok(())
    }
}
