package ui

import (
	"fmt"
	"sync"

	"github.com/chromedp/cdproto/cdp"
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
	_, err := chromedp.Call(s, log.Enable, cdp.Empty{})
	s.must(err)
	_, err = chromedp.Call(s, runtime.Enable, cdp.Empty{})
	s.must(err)
	s.must(chromedp.Listen(s, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork { // a view that is not found is an error of the network
				add(fmt.Sprintf("%s: %s", e.Entry.URL, e.Entry.Text))
			}
		case *runtime.EventExceptionThrown:
			add((&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
		}
	}))
}
