//! The program under test, for tests that need it as a process.

use std::ffi::OsString;

/// The `ocm` binary: the one that `OCM_TESTING_PROGRAM` names, such as that of a release, or else the one that Cargo built for
/// these tests.
pub(crate) fn ocm() -> OsString {
    std::env::var_os("OCM_TESTING_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_ocm").into())
}
