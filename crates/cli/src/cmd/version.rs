//! `clusteradm version`

use crate::{cmd::Context, failure::Failure};

/// The OCM release that this version is compatible with.
const BUNDLE: &str = "1.3.1";

/// Prints the versions.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    context.print(&text(&context.header))
}

fn text(header: &str) -> String {
    format!("{header}\tversion\t:v{}\ndefault bundle\tversion\t:{BUNDLE}\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_separated_by_tabs() {
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(text("clusteradm"), format!("clusteradm\tversion\t:v{own}\ndefault bundle\tversion\t:1.3.1\n"));
    }
}
