// OCM's own API module: its CRDs are what ours are compared with, field by field.
module ocm-rs/testenv/ocm-api

go 1.26.0

require open-cluster-management.io/api v1.3.0
