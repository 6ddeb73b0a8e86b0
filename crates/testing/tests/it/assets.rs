use ocm_testing::{Assets, ControlPlane, TempDir};

#[test]
fn a_missing_binary_is_named_with_the_searched_folders_and_the_remedy() {
    let empty = TempDir::new("assets").unwrap();
    let other = empty.path().join("other");
    let assets = Assets::in_folders([empty.path(), &other]);
    let error = assets.find("etcd").unwrap_err().to_string();
    for part in ["etcd", "make testenv", "KUBEBUILDER_ASSETS", &empty.path().display().to_string()] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    assert!(error.contains(&other.join("etcd").display().to_string()), "{error}");
}

#[tokio::test]
async fn a_control_plane_without_binaries_fails_before_it_starts_anything() {
    let empty = TempDir::new("assets").unwrap();
    let assets = Assets::in_folders([empty.path()]);
    let started = ControlPlane::builder().assets(assets).start().await;
    let error = format!("{:#}", started.unwrap_err());
    assert!(error.contains("make testenv"), "{error}");
}

#[test]
fn the_first_folder_that_holds_a_binary_wins() {
    let dir = TempDir::new("assets").unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    for folder in [&first, &second] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("kubectl"), "").unwrap();
    }
    std::fs::write(second.join("etcd"), "").unwrap();
    let assets = Assets::in_folders([&first, &second]);
    assert_eq!(assets.find("kubectl").unwrap(), first.join("kubectl"));
    assert_eq!(assets.find("etcd").unwrap(), second.join("etcd"));
}

#[test]
fn what_only_a_node_needs_has_a_remedy_of_its_own() {
    let empty = TempDir::new("assets").unwrap();
    let error = Assets::in_folders([empty.path()]).find("kubelet").unwrap_err().to_string();
    assert!(error.contains("make testenv-node"), "{error}");
}
