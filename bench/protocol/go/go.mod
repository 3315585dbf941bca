module bench-protocol

go 1.25.0

require golang.org/x/sys v0.37.0
