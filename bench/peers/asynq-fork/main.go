// The rate tests on the SQLite broker of the asynq fork qluvio/asynq, set up as in the fork's own
// rate test.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	protocol "bench-protocol"

	"github.com/hibiken/asynq"
)

// The kind of all tasks.
const kind = "place"

const (
	// After this time a program ends with an error, sooner than the runner would kill it.
	runLimit = 9 * time.Minute
	// After this time the program stops waiting for the records of tasks that were started and
	// measured.
	shutdownLimit = time.Minute
)

var priorities = map[string]asynq.Priority{"strict": asynq.Strict, "lenient": asynq.Lenient, "interleaved": asynq.Iwrr}

func main() {
	time.AfterFunc(runLimit, func() {
		fmt.Fprintln(os.Stderr, "Error: asynq-fork was not done after", runLimit)
		os.Exit(1)
	})
	protocol.Run("asynq-fork", work)
}

// settings are the poll interval of the server, and whether the producer awaits each submit.
type settings struct {
	tuned, inTurn bool
}

func settingsOf(request *protocol.Request) (settings, error) {
	known := map[string]settings{
		"default":       {},
		"tuned":         {tuned: true},
		"in turn":       {inTurn: true},
		"tuned in turn": {tuned: true, inTurn: true},
	}
	found, ok := known[request.Settings]
	if !ok || request.Durability != "normal" {
		return settings{}, fmt.Errorf("asynq-fork has no settings `%s` at durability level %s", request.Settings, request.Durability)
	}
	return found, nil
}

func work(request *protocol.Request) (*protocol.Measurement, error) {
	row := &request.Row
	if row.Workload != "rates" {
		return nil, fmt.Errorf("asynq-fork has no workload `%s`", row.Workload)
	}
	settings, err := settingsOf(request)
	if err != nil {
		return nil, err
	}
	if path, asked := protocol.ProducerAskedFor(); asked {
		return nil, produceFor(row, settings, path)
	}
	if _, ok := priorities[row.Mode]; !ok {
		return nil, fmt.Errorf("asynq-fork has no mode `%s`", row.Mode)
	}
	if row.Backlog.Unserved+row.Backlog.Runnable > 0 {
		return nil, fmt.Errorf("asynq-fork has no such backlog")
	}
	directory, err := os.MkdirTemp(request.Directory, "asynq-fork-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	restore, err := silence()
	if err != nil {
		return nil, err
	}
	defer restore()
	return rates(row, settings, filepath.Join(directory, "queues.sqlite"))
}

// silence keeps the fork's own output, one line for each poll of a queue without a free slot, away
// from the program's output, whose last line is the result.
func silence() (restore func(), err error) {
	nothing, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	output := os.Stdout
	os.Stdout = nothing
	return func() { os.Stdout = output }, nil
}

func rates(row *protocol.Row, settings settings, path string) (*protocol.Measurement, error) {
	server := asynq.NewServer(connection(path), configuration(row, settings))
	// The client that shares the server's connection wakes it.
	client := asynq.NewClientFrom(server)
	if err := fill(row, client); err != nil {
		return nil, err
	}
	starts := protocol.NewStarts(row.Count)
	handler := func(_ context.Context, task *asynq.Task) error { return starts.Start(task.Payload()) }
	if err := server.Start(asynq.HandlerFunc(handler)); err != nil {
		return nil, err
	}
	defer shutdown(server)
	submitted, err := produce(row, settings, client, path)
	if err != nil {
		return nil, err
	}
	starts.Wait(len(submitted))
	return starts.Measurement(row, submitted), nil
}

func shutdown(server *asynq.Server) {
	over := make(chan struct{})
	go func() {
		server.Shutdown()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(shutdownLimit):
	}
}

func connection(path string) asynq.RqliteConnOpt {
	return asynq.RqliteConnOpt{
		Config: &asynq.RqliteConfig{
			Type:                  "sqlite",
			SqliteDbPath:          path,
			TablesPrefix:          "bench_",
			PubsubPollingInterval: time.Second,
		},
		Log: silent{},
	}
}

func configuration(row *protocol.Row, settings settings) asynq.Config {
	configuration := asynq.Config{
		Concurrency: row.Slots,
		Queues:      asynq.NewQueuesConfig(row.QueueWeights(), priorities[row.Mode]),
		Logger:      silent{},
		LogLevel:    asynq.FatalLevel,
	}
	if settings.tuned {
		configuration.ProcessorEmptyQSleep = time.Millisecond
	}
	return configuration
}

func produce(row *protocol.Row, settings settings, client *asynq.Client, path string) ([]protocol.Submitted, error) {
	if row.Producer == "outside" {
		return protocol.ProduceElsewhere(path)
	}
	return produceTo(row, settings, client)
}

// produceFor does the whole work of a producer in a separate process.
func produceFor(row *protocol.Row, settings settings, path string) error {
	client := asynq.NewClient(connection(path))
	defer client.Close()
	submitted, err := produceTo(row, settings, client)
	if err != nil {
		return err
	}
	return protocol.PrintSubmitted(submitted)
}

func produceTo(row *protocol.Row, settings settings, client *asynq.Client) ([]protocol.Submitted, error) {
	// A task is kept after its end, as in the other systems.
	submit := func(queue string, payload []byte) error {
		_, err := client.Enqueue(asynq.NewTask(kind, payload), asynq.Queue(queue), asynq.Retention(24*time.Hour))
		return err
	}
	if settings.inTurn {
		return protocol.ProduceInTurn(row, submit)
	}
	return protocol.Produce(row, submit)
}

// fill submits the tasks of a backlog that are due in an hour, in equal parts to all queues, one
// after the other, as the fork writes them.
func fill(row *protocol.Row, client *asynq.Client) error {
	payload, err := row.Payloads()
	if err != nil {
		return err
	}
	weights := row.Weights()
	for number := range row.Backlog.Delayed {
		queue := asynq.Queue(protocol.QueueName(weights[number%len(weights)]))
		if _, err := client.Enqueue(asynq.NewTask(kind, payload(^uint64(0))), queue, asynq.ProcessIn(time.Hour)); err != nil {
			return err
		}
	}
	return nil
}

// silent is a log that discards everything.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) { os.Exit(1) }
