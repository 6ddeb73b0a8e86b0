package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"open-cluster-management.io/api/client/cluster/clientset/versioned/fake"
	informers "open-cluster-management.io/api/client/cluster/informers/externalversions"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"open-cluster-management.io/ocm/pkg/placement/controllers/framework"
	"open-cluster-management.io/ocm/pkg/placement/controllers/metrics"
	"open-cluster-management.io/ocm/pkg/placement/controllers/scheduling"
	testinghelpers "open-cluster-management.io/ocm/pkg/placement/helpers/testing"
	"open-cluster-management.io/ocm/pkg/placement/plugins/addon"
	"open-cluster-management.io/ocm/pkg/placement/plugins/tainttoleration"
	"open-cluster-management.io/sdk-go/pkg/basecontroller/factory"
)

// How often the controller reconciles a placement at most until it has nothing more to write. It writes the clusters of a
// decision and its labels one after the other.
const rounds = 4

// hub is OCM's controller with the objects of a snapshot.
type hub struct {
	placement  *clusterv1beta1.Placement
	client     *fake.Clientset
	informers  informers.SharedInformerFactory
	scheduler  *recorder
	controller factory.Controller
}

// recorder schedules once, and repeats the result from then on.
type recorder struct {
	scheduling.Scheduler
	isDone     bool
	candidates []string
	result     scheduling.ScheduleResult
	status     *framework.Status
	requeueAt  *int64
}

func newHub(snapshot *Snapshot) *hub {
	now := clock.Clock(clocktesting.NewFakeClock(snapshot.Now.Time))
	tainttoleration.TolerationClock, addon.AddOnClock = now, now
	objects := snapshot.objects()
	client := fake.NewSimpleClientset(objects...)
	all := testinghelpers.NewClusterInformerFactory(client, objects...)
	events, durations := &kevents.FakeRecorder{}, metrics.NewScheduleMetrics(clock.RealClock{})
	v1, beta1, beta2 := all.Cluster().V1(), all.Cluster().V1beta1(), all.Cluster().V1beta2()
	scores := all.Cluster().V1alpha1().AddOnPlacementScores()
	scheduler := &recorder{Scheduler: scheduling.NewPluginScheduler(scheduling.NewSchedulerHandler(client,
		beta1.PlacementDecisions().Lister(), scores.Lister(), v1.ManagedClusters().Lister(), events, durations))}
	controller := scheduling.NewSchedulingController(context.Background(), client, v1.ManagedClusters(),
		beta2.ManagedClusterSets(), beta2.ManagedClusterSetBindings(), beta1.Placements(), beta1.PlacementDecisions(),
		scores, scheduler, events, durations)
	return &hub{&snapshot.Placement, client, all, scheduler, controller}
}

func (h *hub) close() {
	h.controller.SyncContext().Queue().ShutDown()
}

// decide reconciles the placement until there is nothing more to write.
func (h *hub) decide() *Answer {
	err := h.sync()
	if !h.scheduler.isDone {
		answer := &Answer{Ignored: err == nil}
		if err != nil {
			answer.Error = err.Error()
		}
		return answer
	}
	for round := 1; len(h.writes()) > 0; round++ {
		if round == rounds {
			panic("OCM's controller does not come to an end")
		}
		h.observeWrites()
		// An error repeats the outcome of scheduling, which is in the answer.
		_ = h.sync()
	}
	return h.answer()
}

func (h *hub) sync() error {
	key := h.placement.Namespace + "/" + h.placement.Name
	return h.controller.Sync(context.Background(), h.controller.SyncContext(), key)
}

// writes returns what the controller has written since observeWrites.
func (h *hub) writes() []string {
	var writes []string
	for _, action := range h.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	return writes
}

// observeWrites does what informers do.
func (h *hub) observeWrites() {
	beta1 := h.informers.Cluster().V1beta1()
	decisions := []any{}
	for _, decision := range h.decisions() {
		decisions = append(decisions, &decision)
	}
	must(beta1.PlacementDecisions().Informer().GetStore().Replace(decisions, ""))
	must(beta1.Placements().Informer().GetStore().Replace([]any{h.written()}, ""))
	h.client.ClearActions()
}

func (h *hub) decisions() []clusterv1beta1.PlacementDecision {
	all, err := h.client.ClusterV1beta1().PlacementDecisions("").List(context.Background(), metav1.ListOptions{})
	must(err)
	return all.Items
}

// written returns the placement with its status.
func (h *hub) written() *clusterv1beta1.Placement {
	placements := h.client.ClusterV1beta1().Placements(h.placement.Namespace)
	placement, err := placements.Get(context.Background(), h.placement.Name, metav1.GetOptions{})
	must(err)
	return placement
}

func (r *recorder) Schedule(
	ctx context.Context, placement *clusterv1beta1.Placement, clusters []*clusterv1.ManagedCluster,
) (scheduling.ScheduleResult, *framework.Status) {
	if !r.isDone {
		r.candidates = sorted(clusters)
		r.result, r.status = r.Scheduler.Schedule(ctx, placement, clusters)
		r.isDone = true
		if after := r.result.RequeueAfter(); after != nil {
			// OCM has taken it relative to the time of the machine. Taints are dated to the second.
			at := time.Now().Add(*after).Round(time.Second).Unix()
			r.requeueAt = &at
		}
	}
	return r.result, r.status
}

func (h *hub) answer() *Answer {
	scheduled := h.scheduler
	return &Answer{
		Candidates:   scheduled.candidates,
		Filters:      filters(scheduled.result.FilterResults()),
		Prioritizers: prioritizers(scheduled.result.PrioritizerResults()),
		Scores:       scheduled.result.PrioritizerScores(),
		Selected:     names(scheduled.result.Decisions()),
		Unscheduled:  scheduled.result.NumOfUnscheduled(),
		RequeueAt:    scheduled.requeueAt,
		Code:         code(scheduled.status),
		Plugin:       scheduled.status.Plugin(),
		Message:      scheduled.status.Message(),
		Status:       status(h.written()),
		Decisions:    h.ownDecisions(),
	}
}

func filters(results []scheduling.FilterResult) []Filter {
	filters := []Filter{}
	for _, result := range results {
		slices.Sort(result.FilteredClusters)
		filters = append(filters, Filter{result.Name, result.FilteredClusters})
	}
	return filters
}

func prioritizers(results []scheduling.PrioritizerResult) []Prioritizer {
	prioritizers := []Prioritizer{}
	for _, result := range results {
		prioritizers = append(prioritizers, Prioritizer{result.Name, result.Weight, result.Scores})
	}
	slices.SortFunc(prioritizers, func(a, b Prioritizer) int {
		if byName := strings.Compare(a.Name, b.Name); byName != 0 {
			return byName
		}
		return int(a.Weight - b.Weight)
	})
	return prioritizers
}

func code(status *framework.Status) string {
	return map[framework.Code]string{
		framework.Success: "Success", framework.Warning: "Warning", framework.Error: "Error",
		framework.Misconfigured: "Misconfigured",
	}[status.Code()]
}

func status(placement *clusterv1beta1.Placement) Status {
	status := Status{Selected: placement.Status.NumberOfSelectedClusters, Groups: []Group{}}
	for _, group := range placement.Status.DecisionGroups {
		status.Groups = append(status.Groups,
			Group{group.DecisionGroupIndex, group.DecisionGroupName, group.Decisions, group.ClustersCount})
	}
	for _, kind := range []string{"PlacementMisconfigured", "PlacementSatisfied"} {
		if is := meta.FindStatusCondition(placement.Status.Conditions, kind); is != nil {
			status.Conditions = append(status.Conditions, Condition{kind, string(is.Status), is.Reason, is.Message})
		}
	}
	return status
}

func (h *hub) ownDecisions() []Decision {
	decisions := []Decision{}
	for _, decision := range h.decisions() {
		labels := decision.Labels
		if decision.Namespace != h.placement.Namespace || labels[clusterv1beta1.PlacementLabel] != h.placement.Name {
			continue
		}
		clusters := []string{}
		for _, one := range decision.Status.Decisions {
			clusters = append(clusters, one.ClusterName)
		}
		decisions = append(decisions, Decision{decision.Name, labels[clusterv1beta1.DecisionGroupNameLabel],
			labels[clusterv1beta1.DecisionGroupIndexLabel], clusters})
	}
	slices.SortFunc(decisions, func(a, b Decision) int { return strings.Compare(a.Name, b.Name) })
	return decisions
}

func names(clusters []*clusterv1.ManagedCluster) []string {
	names := []string{}
	for _, cluster := range clusters {
		names = append(names, cluster.Name)
	}
	return names
}

func sorted(clusters []*clusterv1.ManagedCluster) []string {
	names := names(clusters)
	slices.Sort(names)
	return names
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
