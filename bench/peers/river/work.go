package main

import (
	"context"
	"fmt"
	"time"

	protocol "bench-protocol"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// The time limit of a run.
const patience = 5 * time.Minute

// crew is a worker and the jobs that it has seen.
type crew struct {
	pool      *pgxpool.Pool
	client    *river.Client[pgx.Tx]
	starts    *protocol.Starts
	completed <-chan *river.Event
}

// newCrew makes the tables and a client that does not work yet.
func newCrew(ctx context.Context, request *protocol.Request) (*crew, error) {
	pool, err := pool(ctx, request.Postgres, connections)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool); err != nil {
		return nil, err
	}
	starts := protocol.NewStarts(request.Row.Count)
	client, err := workerClient(pool, request, func(order *protocol.Order) { starts.StartOrder(order) })
	if err != nil {
		return nil, err
	}
	completed, _ := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: request.Row.Count + 1000,
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed},
	})
	return &crew{pool: pool, client: client, starts: starts, completed: completed}, nil
}

// untilCompleted waits for this many events, each of which arrives when an end is durable.
func (crew *crew) untilCompleted(count int) error {
	limit := time.After(patience)
	for range count {
		select {
		case event := <-crew.completed:
			if event == nil || event.Kind != river.EventKindJobCompleted {
				return fmt.Errorf("a job did not complete: %+v", event)
			}
		case <-limit:
			return fmt.Errorf("not all of %d jobs completed", count)
		}
	}
	return nil
}

// measurement returns the state that the database holds.
func (crew *crew) measurement(ctx context.Context, row *protocol.Row, begun time.Time, ended time.Time) (*protocol.Measurement, error) {
	if err := crew.client.Stop(ctx); err != nil {
		return nil, err
	}
	completed, err := count(ctx, crew.pool, "completed")
	if err != nil {
		return nil, err
	}
	lost, duplicated := crew.starts.Ledger()
	return &protocol.Measurement{
		Value:      float64(row.Count) / ended.Sub(begun).Seconds(),
		Observed:   map[string]int{"completed": completed},
		Lost:       lost,
		Duplicated: duplicated,
	}, nil
}

// drain processes a backlog that was inserted before.
func drain(ctx context.Context, request *protocol.Request) (*protocol.Measurement, error) {
	crew, err := newCrew(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := insertAll(ctx, crew.client, &request.Row); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := crew.client.Start(ctx); err != nil {
		return nil, err
	}
	if err := crew.untilCompleted(request.Row.Count); err != nil {
		return nil, err
	}
	return crew.measurement(ctx, &request.Row, begun, time.Now())
}

// roundTrips inserts in bulk while the worker runs.
func roundTrips(ctx context.Context, request *protocol.Request) (*protocol.Measurement, error) {
	crew, err := newCrew(ctx, request)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := crew.client.Start(ctx); err != nil {
		return nil, err
	}
	if err := insertAll(ctx, crew.client, &request.Row); err != nil {
		return nil, err
	}
	if err := crew.untilCompleted(request.Row.Count); err != nil {
		return nil, err
	}
	return crew.measurement(ctx, &request.Row, begun, time.Now())
}

// wake measures the time from the call of an insert, by a client with its own connections, to the
// start of the worker's function.
func wake(ctx context.Context, request *protocol.Request) (*protocol.Measurement, error) {
	row := &request.Row
	crew, err := newCrew(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := crew.client.Start(ctx); err != nil {
		return nil, err
	}
	others, err := pool(ctx, request.Postgres, 4)
	if err != nil {
		return nil, err
	}
	client, err := inserter(others)
	if err != nil {
		return nil, err
	}
	// The worker is idle for a moment.
	time.Sleep(500 * time.Millisecond)
	called, err := insertPaced(ctx, client, row)
	if err != nil {
		return nil, err
	}
	if err := crew.untilCompleted(row.Count); err != nil {
		return nil, err
	}
	if err := crew.client.Stop(ctx); err != nil {
		return nil, err
	}
	latencies := crew.starts.Since(called)
	lost, duplicated := crew.starts.Ledger()
	return &protocol.Measurement{
		Value:      latencies.Percentile(0.5),
		Latencies:  latencies,
		Observed:   map[string]int{"started": len(latencies)},
		Lost:       lost,
		Duplicated: duplicated,
	}, nil
}
