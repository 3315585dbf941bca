package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	protocol "bench-protocol"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// places makes jobs with payloads of the row's size.
func places(row *protocol.Row) (func(number int) place, error) {
	note, err := row.Note()
	if err != nil {
		return nil, err
	}
	return func(number int) place { return place{protocol.Order{Number: uint64(number), Note: note}} }, nil
}

// insertAll inserts all jobs of a row in calls of its batch, from as many submitters as it has.
func insertAll(ctx context.Context, client *river.Client[pgx.Tx], row *protocol.Row) error {
	job, err := places(row)
	if err != nil {
		return err
	}
	var next atomic.Int64
	return from(max(row.Submitters, 1), func() error {
		for {
			first := (int(next.Add(1)) - 1) * row.Batch
			if first >= row.Count {
				return nil
			}
			jobs := make([]river.InsertManyParams, min(row.Batch, row.Count-first))
			for number := range jobs {
				jobs[number].Args = job(first + number)
			}
			if _, err := client.InsertManyFast(ctx, jobs); err != nil {
				return err
			}
		}
	})
}

// from runs a function in a number of goroutines.
func from(submitters int, run func() error) error {
	failures := make(chan error, submitters)
	for range submitters {
		go func() { failures <- run() }()
	}
	var failure error
	for range submitters {
		failure = errors.Join(failure, <-failures)
	}
	return failure
}

// insertPaced inserts jobs one by one at the row's rate, without waiting for earlier ones, and
// returns the time of each call.
func insertPaced(ctx context.Context, client *river.Client[pgx.Tx], row *protocol.Row) ([]int64, error) {
	job, err := places(row)
	if err != nil {
		return nil, err
	}
	called := make([]int64, row.Count)
	failures := make([]error, row.Count)
	var group sync.WaitGroup
	begun := time.Now()
	for number := range called {
		time.Sleep(time.Until(begun.Add(time.Duration(number) * time.Second / time.Duration(row.Rate))))
		group.Go(func() {
			called[number] = protocol.Now()
			_, failures[number] = client.Insert(ctx, job(number), nil)
		})
	}
	group.Wait()
	return called, errors.Join(failures...)
}

// prepared makes the tables, and returns a client that only inserts.
func prepared(ctx context.Context, request *protocol.Request, most int) (*pgxpool.Pool, *river.Client[pgx.Tx], error) {
	pool, err := pool(ctx, request.Postgres, most)
	if err != nil {
		return nil, nil, err
	}
	if err := migrate(ctx, pool); err != nil {
		return nil, nil, err
	}
	client, err := inserter(pool)
	return pool, client, err
}

// submits inserts in bulk while no worker runs.
func submits(ctx context.Context, request *protocol.Request) (*protocol.Measurement, error) {
	if request.Settings != "InsertManyFast" {
		return nil, fmt.Errorf("river has no settings `%s` here", request.Settings)
	}
	row := &request.Row
	pool, client, err := prepared(ctx, request, connections)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := insertAll(ctx, client, row); err != nil {
		return nil, err
	}
	elapsed := time.Since(begun)
	inserted, err := count(ctx, pool, "available")
	observed := map[string]int{"inserted": inserted}
	return &protocol.Measurement{Value: float64(row.Count) / elapsed.Seconds(), Observed: observed}, err
}

// eachSubmit inserts jobs in separate calls, from as many goroutines as the row has submitters,
// each with a connection.
func eachSubmit(ctx context.Context, request *protocol.Request) (*protocol.Measurement, error) {
	if request.Settings != "Insert" {
		return nil, fmt.Errorf("river has no settings `%s` here", request.Settings)
	}
	row := &request.Row
	pool, client, err := prepared(ctx, request, row.Submitters)
	if err != nil {
		return nil, err
	}
	job, err := places(row)
	if err != nil {
		return nil, err
	}
	latencies := make(protocol.Latencies, row.Count)
	var next atomic.Int64
	begun := time.Now()
	err = from(row.Submitters, func() error {
		for number := int(next.Add(1)) - 1; number < row.Count; number = int(next.Add(1)) - 1 {
			before := protocol.Now()
			if _, err := client.Insert(ctx, job(number), nil); err != nil {
				return err
			}
			latencies[number] = protocol.Now() - before
		}
		return nil
	})
	elapsed := time.Since(begun)
	if err != nil {
		return nil, err
	}
	inserted, err := count(ctx, pool, "available")
	return &protocol.Measurement{
		Value:     float64(row.Count) / elapsed.Seconds(),
		Latencies: latencies,
		Observed:  map[string]int{"ended": row.Count, "inserted": inserted},
	}, err
}
