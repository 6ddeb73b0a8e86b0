// Asks OCM's scheduling controller what it decides.
//
// Reads snapshots, one JSON object per line, and writes for each a line with OCM's answer: what its scheduler returns, and
// what its controller makes of it. Everything runs through what OCM exports: the controller that its `placement` program
// runs, the scheduler with all plugins, and a fake client whose objects are those of the snapshot.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard())
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// serve answers each snapshot before it reads the next one.
func serve(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	encoder := json.NewEncoder(out)
	for {
		var snapshot Snapshot
		if err := decoder.Decode(&snapshot); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a snapshot: %w", err)
		}
		if err := encoder.Encode(answer(&snapshot)); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

// answer also returns if OCM panics.
func answer(snapshot *Snapshot) (answer *Answer) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = &Answer{Panic: fmt.Sprint(cause)}
		}
	}()
	hub := newHub(snapshot)
	defer hub.close()
	return hub.decide()
}
