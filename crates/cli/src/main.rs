//! `clusteradm`, the command line of a hub administrator.

use std::process::ExitCode;

use ocm_cli::Environment;

fn main() -> ExitCode {
    ocm_runtime::client::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => ExitCode::from(runtime.block_on(ocm_cli::run(std::env::args(), &Environment::of_process()))),
        Err(error) => {
            eprintln!("error: failed to start: {error}");
            ExitCode::FAILURE
        }
    }
}
