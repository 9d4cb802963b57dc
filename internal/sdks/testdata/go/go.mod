module sdks

go 1.26

require (
	github.com/google/uuid v1.3.0 // indirect
	github.com/segmentio/analytics-go/v3 v3.2.1 // indirect
	github.com/segmentio/backo-go v1.0.0 // indirect
	github.com/xtgo/uuid v0.0.0-20140804021211-a0b114877d4c // indirect
	gopkg.in/segmentio/analytics-go.v3 v3.1.0 // indirect
)
