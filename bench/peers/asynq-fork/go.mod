module bench-asynq-fork

go 1.25.0

require (
	bench-protocol v0.0.0
	github.com/hibiken/asynq v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.1.1 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/go-redis/redis/v8 v8.11.2 // indirect
	github.com/golang/protobuf v1.4.2 // indirect
	github.com/google/go-cmp v0.5.6 // indirect
	github.com/google/uuid v1.2.0 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/mattn/go-sqlite3 v0.0.0-00010101000000-000000000000 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/rqlite/gorqlite v0.0.0-20230310040812-ec5e524a562e // indirect
	github.com/spf13/cast v1.3.1 // indirect
	github.com/stretchr/testify v1.7.0 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.7.0 // indirect
	golang.org/x/sys v0.37.0 // indirect
	golang.org/x/time v0.0.0-20190308202827-9d24e82272b4 // indirect
	google.golang.org/protobuf v1.25.0 // indirect
	gopkg.in/yaml.v3 v3.0.0-20210107192922-496545a6307b // indirect
)

replace bench-protocol => ../../protocol/go

// A checkout of github.com/qluvio/asynq, branch instant-polling-dequeue-perf, and what its go.mod replaces.
replace (
	github.com/hibiken/asynq => ../../target/asynq-fork
	github.com/mattn/go-sqlite3 => github.com/rqlite/go-sqlite3 v1.28.0
	github.com/rqlite/gorqlite => github.com/eluv-io/gorqlite v0.0.9
)
