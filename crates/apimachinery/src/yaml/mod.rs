//! YAML as kubectl reads and writes it. Everything in this project that reads YAML goes through here.
//!
//! serde-saphyr reads, and its serializer's output would read back equal as well. But it quotes strings that kubectl does
//! not, and writes long ones as `>` blocks: our CRDs would differ from OCM's, and `-o yaml` from kubectl's, in every file.

mod scalar;
mod writer;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

/// A failure to read or write YAML.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not YAML, has a key twice, or more than one document where one is wanted.
    #[error("failed to parse YAML")]
    Parse(#[source] Box<serde_saphyr::Error>),
    /// The document is YAML but not of the wanted type.
    #[error("failed to read YAML document {document}")]
    Convert {
        /// Position of the document, from 1.
        document: usize,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// The value has no form in YAML, for instance a map whose keys are not strings.
    #[error("failed to write YAML")]
    Write(#[source] serde_json::Error),
}

/// Reads one document. An empty text is null.
///
/// As kubectl does, it reads `0644` as octal, `yes` and `on` as true, and `1.0` or `1e3` as integers.
///
/// # Errors
///
/// When the text is not YAML or does not fit the type.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let value = serde_saphyr::from_str_with_options(text, options()).map_err(|error| Error::Parse(Box::new(error)))?;
    convert(value, 1)
}

/// Reads every document of a text, leaving out empty ones. The rules are those of [`from_str`].
///
/// # Errors
///
/// When the text is not YAML or a document does not fit the type.
pub fn from_str_multi<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| Error::Parse(Box::new(error)))?;
    let numbered = documents.into_iter().zip(1..);
    numbered.filter(|(value, _)| !value.is_null()).map(|(value, document)| convert(value, document)).collect()
}

/// Writes one document in block style: keys sorted, list items as far left as their key, long strings folded.
///
/// # Errors
///
/// When the value has no form in JSON, for instance a map whose keys are not strings.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let mut value = serde_json::to_value(value).map_err(Error::Write)?;
    whole_floats_to_integers(&mut value);
    Ok(writer::write(&value))
}

/// Errors show no lines of the text, which may hold secrets.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false }
}

fn convert<T: DeserializeOwned>(mut value: Value, document: usize) -> Result<T, Error> {
    whole_floats_to_integers(&mut value);
    serde_json::from_value(value).map_err(|source| Error::Convert { document, source })
}

/// Go passes numbers through JSON, where `1.0` is `1`.
fn whole_floats_to_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = whole(number) {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_floats_to_integers),
        Value::Object(fields) => fields.values_mut().for_each(whole_floats_to_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer that a float represents, if a float represents it exactly.
fn whole(number: &Number) -> Option<i64> {
    /// 2^53: up to here every integer is a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

#[cfg(test)]
mod tests;
