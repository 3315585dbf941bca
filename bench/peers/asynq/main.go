// The rate tests on asynq, on a Redis that runs beside it.
package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	protocol "bench-protocol"

	"github.com/hibiken/asynq"
)

// The kind of all tasks.
const kind = "place"

func main() {
	// The Redis server ends with the thread that started it, so that thread must not end.
	runtime.LockOSThread()
	protocol.Run("asynq", work)
}

func work(request *protocol.Request) (*protocol.Measurement, error) {
	if request.Row.Workload != "rates" {
		return nil, fmt.Errorf("asynq has no workload `%s`", request.Row.Workload)
	}
	if address, asked := protocol.ProducerAskedFor(); asked {
		return nil, produceFor(&request.Row, address)
	}
	synchronous, tuned, err := settings(request)
	if err != nil {
		return nil, err
	}
	if request.Row.Backlog.Unserved+request.Row.Backlog.Runnable > 0 {
		return nil, fmt.Errorf("asynq has no such backlog")
	}
	redis, err := startRedis(request.Directory, synchronous)
	if err != nil {
		return nil, err
	}
	defer redis.stop()
	measured, err := rates(&request.Row, redis.address, tuned)
	if err != nil {
		return nil, err
	}
	// Stopped before the line is made, so that the server's CPU time is part of it.
	redis.stop()
	if measured.Settings = request.Settings; request.Row.Mode == "interleaved" {
		measured.Settings += " lenient"
	}
	return measured, nil
}

// settings are the sync mode of Redis, and whether asynq polls often.
func settings(request *protocol.Request) (synchronous string, tuned bool, err error) {
	synchronous, rest, _ := strings.Cut(request.Settings, " ")
	levels := map[string]string{"everysec": "normal", "always": "full"}
	if levels[synchronous] != request.Durability || (rest != "" && rest != "tuned") {
		return "", false, fmt.Errorf("asynq has no settings `%s` at durability level %s", request.Settings, request.Durability)
	}
	return synchronous, rest == "tuned", nil
}

func rates(row *protocol.Row, address string, tuned bool) (*protocol.Measurement, error) {
	connection := asynq.RedisClientOpt{Addr: address}
	client := asynq.NewClient(connection)
	defer client.Close()
	if err := fill(row, client); err != nil {
		return nil, err
	}
	server := asynq.NewServer(connection, configuration(row, tuned))
	starts := protocol.NewStarts(row.Count)
	handler := func(_ context.Context, task *asynq.Task) error { return starts.Start(task.Payload()) }
	if err := server.Start(asynq.HandlerFunc(handler)); err != nil {
		return nil, err
	}
	defer server.Shutdown()
	submitted, err := produce(row, client, address)
	if err != nil {
		return nil, err
	}
	starts.Wait(len(submitted))
	return starts.Measurement(row, submitted), nil
}

func configuration(row *protocol.Row, tuned bool) asynq.Config {
	configuration := asynq.Config{
		Concurrency:    row.Slots,
		Queues:         row.QueueWeights(),
		StrictPriority: row.Mode == "strict",
		LogLevel:       asynq.FatalLevel,
	}
	if tuned {
		configuration.TaskCheckInterval = time.Millisecond
	}
	return configuration
}

func produce(row *protocol.Row, client *asynq.Client, address string) ([]protocol.Submitted, error) {
	if row.Producer == "outside" {
		return protocol.ProduceElsewhere(address)
	}
	return protocol.Produce(row, submitTo(client))
}

// produceFor does the whole work of a producer in a separate process.
func produceFor(row *protocol.Row, address string) error {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	defer client.Close()
	submitted, err := protocol.Produce(row, submitTo(client))
	if err != nil {
		return err
	}
	return protocol.PrintSubmitted(submitted)
}

// submitTo keeps a task after its end, as the other systems do.
func submitTo(client *asynq.Client) protocol.Submit {
	return func(queue string, payload []byte) error {
		_, err := client.Enqueue(asynq.NewTask(kind, payload), asynq.Queue(queue), asynq.Retention(24*time.Hour))
		return err
	}
}

// fill submits the tasks of a backlog that are due in an hour, in equal parts to all queues.
func fill(row *protocol.Row, client *asynq.Client) error {
	payload, err := row.Payloads()
	if err != nil {
		return err
	}
	weights := row.Weights()
	places := make(chan struct{}, 64)
	var group sync.WaitGroup
	failures := make(chan error, row.Backlog.Delayed)
	for number := range row.Backlog.Delayed {
		places <- struct{}{}
		group.Go(func() {
			queue := asynq.Queue(protocol.QueueName(weights[number%len(weights)]))
			_, err := client.Enqueue(asynq.NewTask(kind, payload(^uint64(0))), queue, asynq.ProcessIn(time.Hour))
			failures <- err
			<-places
		})
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return nil
}
