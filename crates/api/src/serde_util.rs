//! Helpers for `#[serde(...)]` attributes.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the empty value: Go writes a required list that is nil as `null`.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is empty. For structs that Go holds by value: it sends them only when something in them is set, since
/// its patches leave out what is empty before and after.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
