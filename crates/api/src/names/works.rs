//! Names of works that the hub makes for others.

/// Prefix of the names of the works that bring an add-on to a cluster; a number from 0 follows.
pub fn addon_deploy_prefix(addon: &str) -> String {
    format!("addon-{addon}-deploy-")
}

/// One of the works that bring an add-on to a cluster.
pub fn addon_deploy(addon: &str, index: usize) -> String {
    format!("{}{index}", addon_deploy_prefix(addon))
}
