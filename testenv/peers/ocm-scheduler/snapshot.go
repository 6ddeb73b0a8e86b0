package main

import (
	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Snapshot is a placement and all that its decision depends on, as the API server returns it.
type Snapshot struct {
	Now       metav1.Time                               `json:"now"`
	Placement clusterv1beta1.Placement                  `json:"placement"`
	Clusters  []clusterv1.ManagedCluster                `json:"clusters"`
	Sets      []clusterv1beta2.ManagedClusterSet        `json:"sets"`
	Bindings  []clusterv1beta2.ManagedClusterSetBinding `json:"bindings"`
	Decisions []clusterv1beta1.PlacementDecision        `json:"decisions"`
	Scores    []clusterv1alpha1.AddOnPlacementScore     `json:"scores"`
}

func (s *Snapshot) objects() []runtime.Object {
	objects := []runtime.Object{&s.Placement}
	for i := range s.Clusters {
		objects = append(objects, &s.Clusters[i])
	}
	for i := range s.Sets {
		objects = append(objects, &s.Sets[i])
	}
	for i := range s.Bindings {
		objects = append(objects, &s.Bindings[i])
	}
	for i := range s.Decisions {
		objects = append(objects, &s.Decisions[i])
	}
	for i := range s.Scores {
		objects = append(objects, &s.Scores[i])
	}
	return objects
}

// Answer is what OCM decides. All but Selected is sorted by name, since OCM's own order is random.
type Answer struct {
	// Whether the controller leaves the placement alone.
	Ignored bool `json:"ignored"`
	// Why the controller stops before it schedules.
	Error string `json:"error"`
	// Why OCM panics.
	Panic string `json:"panic"`
	// The clusters of the eligible sets.
	Candidates []string `json:"candidates"`
	// What is left after each filter.
	Filters []Filter `json:"filters"`
	// The scores of each prioritizer.
	Prioritizers []Prioritizer `json:"prioritizers"`
	// The sums of scores.
	Scores map[string]int64 `json:"scores"`
	// The selected clusters, the best first.
	Selected []string `json:"selected"`
	// How many more are wanted.
	Unscheduled int `json:"unscheduled"`
	// When the placement is scheduled again, in seconds since 1970.
	RequeueAt *int64 `json:"requeueAt"`
	// The outcome of scheduling: Success, Warning, Error or Misconfigured.
	Code    string `json:"code"`
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
	// The placement's status.
	Status Status `json:"status"`
	// The decisions with the placement's label, once the controller has nothing more to write.
	Decisions []Decision `json:"decisions"`
}

// Filter is what one filter, and those before it, leave.
type Filter struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
}

// Prioritizer is the outcome of one prioritizer.
type Prioritizer struct {
	Name   string           `json:"name"`
	Weight int32            `json:"weight"`
	Scores map[string]int64 `json:"scores"`
}

// Status is the status of a placement.
type Status struct {
	Selected   int32       `json:"selected"`
	Groups     []Group     `json:"groups"`
	Conditions []Condition `json:"conditions"`
}

// Group is a decision group in the status of a placement.
type Group struct {
	Index     int32    `json:"index"`
	Name      string   `json:"name"`
	Decisions []string `json:"decisions"`
	Clusters  int32    `json:"clusters"`
}

// Condition is a condition of a placement.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Decision is a PlacementDecision.
type Decision struct {
	Name     string   `json:"name"`
	Group    string   `json:"group"`
	Index    string   `json:"index"`
	Clusters []string `json:"clusters"`
}
