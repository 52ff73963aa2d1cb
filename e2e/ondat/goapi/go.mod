module github.com/fairlead-io/fairlead/e2e/ondat/goapi

go 1.26.0

require (
	github.com/antihax/optional v1.0.0
	github.com/fairlead-io/fairlead v0.0.0
	github.com/storageos/go-api/v2 v2.4.0
)

require golang.org/x/oauth2 v0.38.0 // indirect

replace github.com/fairlead-io/fairlead => ../../..
