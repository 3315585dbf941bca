// The rows on PostgreSQL on River.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	protocol "bench-protocol"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// The number of connections of a worker.
const connections = 20

func main() {
	protocol.Run("river", func(request *protocol.Request) (*protocol.Measurement, error) {
		if request.Postgres == "" {
			return nil, fmt.Errorf("row %s needs a PostgreSQL server", request.Row.Name)
		}
		ctx := context.Background()
		switch request.Row.Workload {
		case "drain":
			return drain(ctx, request)
		case "bulk_round_trips":
			return roundTrips(ctx, request)
		case "bulk_submit":
			return submits(ctx, request)
		case "each_submit":
			return eachSubmit(ctx, request)
		case "wake":
			return wake(ctx, request)
		}
		return nil, fmt.Errorf("river has no workload `%s`", request.Row.Workload)
	})
}

// place is a job with the payload of the rows.
type place struct {
	protocol.Order
}

func (place) Kind() string { return "place" }

// worker calls a function for each job.
type worker struct {
	river.WorkerDefaults[place]
	started func(*protocol.Order)
}

func (worker *worker) Work(_ context.Context, job *river.Job[place]) error {
	worker.started(&job.Args.Order)
	return nil
}

// pool opens connections.
func pool(ctx context.Context, url string, connections int) (*pgxpool.Pool, error) {
	configuration, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	configuration.MaxConns = int32(connections)
	return pgxpool.NewWithConfig(ctx, configuration)
}

// migrate makes River's tables.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// inserter returns a client that only inserts.
func inserter(pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: logger()})
}

// workerClient returns a client that works, with the settings of the request.
func workerClient(pool *pgxpool.Pool, request *protocol.Request, started func(*protocol.Order)) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{started: started})
	configuration := &river.Config{
		Logger:  logger(),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: request.Row.Slots}},
		Workers: workers,
	}
	switch request.Settings {
	case "default":
	case "its benchmark":
		configuration.FetchCooldown = 2 * time.Millisecond
		configuration.FetchPollInterval = 20 * time.Millisecond
	default:
		return nil, fmt.Errorf("river has no settings `%s`", request.Settings)
	}
	return river.NewClient(riverpgxv5.New(pool), configuration)
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// count returns the number of jobs in a state.
func count(ctx context.Context, pool *pgxpool.Pool, state string) (int, error) {
	var jobs int
	err := pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state::text = $1", state).Scan(&jobs)
	return jobs, err
}
