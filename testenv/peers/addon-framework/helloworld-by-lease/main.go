// helloworld, written with OCM's framework for Go, as the original walk-through has it: its health is the lease that its
// agent renews. (OCM's example of today looks at its Deployment through the feedback of its work instead.)
//
// Manifests, registration, rights and agent are those of OCM's example. Unlike there nothing listens on a fixed port, so
// that manager and agent can run on one machine.
//
//	helloworld-by-lease controller --kubeconfig FILE
//	helloworld-by-lease agent --kubeconfig FILE --hub-kubeconfig FILE --cluster-name NAME --addon-namespace NAMESPACE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"open-cluster-management.io/addon-framework/examples/helloworld"
	"open-cluster-management.io/addon-framework/examples/helloworld_agent"
	"open-cluster-management.io/addon-framework/pkg/addonfactory"
	"open-cluster-management.io/addon-framework/pkg/addonmanager"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to run: controller or agent")
	}
	agent := helloworld_agent.NewAgentOptions(helloworld.AddonName)
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster to run on")
	flags.StringVar(&agent.HubKubeconfigFile, "hub-kubeconfig", "", "kubeconfig of the hub, for the agent")
	flags.StringVar(&agent.SpokeClusterName, "cluster-name", "", "the managed cluster, for the agent")
	flags.StringVar(&agent.AddonNamespace, "addon-namespace", "", "where the agent is installed")
	klog.InitFlags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "controller":
		return manage(ctx, config)
	case "agent":
		return agent.RunAgent(ctx, config)
	}
	return fmt.Errorf("%q is neither controller nor agent", args[0])
}

func manage(ctx context.Context, config *rest.Config) error {
	manager, err := addonmanager.New(config)
	if err != nil {
		return err
	}
	registration := helloworld.NewRegistrationOption(config, helloworld.AddonName, "helloworld-agent")
	addon, err := addonfactory.NewAgentAddonFactory(helloworld.AddonName, helloworld.FS, "manifests/templates").
		WithGetValuesFuncs(helloworld.GetDefaultValues).
		WithAgentRegistrationOption(registration).
		BuildTemplateAgentAddon()
	if err != nil {
		return err
	}
	if err := manager.AddAgent(addon); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
