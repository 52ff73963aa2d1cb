package ui

import (
	"fmt"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// listen collects what the browser complains about: breaches of the policy, errors of scripts.
func listen(s *stage, problems *[]string) {
	var mu sync.Mutex
	add := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		*problems = append(*problems, text)
	}
	s.do(log.Enable(), runtime.Enable())
	chromedp.ListenTarget(s, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork { // a view that is not found is an error of the network
				add(fmt.Sprintf("%s: %s", e.Entry.URL, e.Entry.Text))
			}
		case *runtime.EventExceptionThrown:
			add(e.ExceptionDetails.Error())
		}
	})
}
