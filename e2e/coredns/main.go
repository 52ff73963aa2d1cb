// coredns is CoreDNS, built from its Go module with the few plugins that the
// tests need. There is no cache among them: an answer is what the API server said last.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
