package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// perPage is the number of rows of a page.
const perPage = 50

// pageOf is one page of a long list, after a search.
type pageOf[T any] struct {
	Rows []T
	// Search and State are what the user asked for; Path and Noun are of the view.
	Search, State, Path, Noun string
	// Found rows of All; Page of Pages; From and To count from 1.
	Found, All, Page, Pages, From, To int
	// Previous and Next are links; empty if there is none.
	Previous, Next string
}

// paged searches for the text of ?q and cuts the page of ?page. texts are what a row is found by.
// A page that does not exist is the nearest one.
func paged[T any](r *http.Request, noun string, all []T, texts func(T) []string) pageOf[T] {
	query := r.URL.Query()
	p := pageOf[T]{Search: strings.TrimSpace(query.Get("q")), State: query.Get("state"), Path: r.URL.Path, Noun: noun, All: len(all)}
	wanted := strings.ToLower(p.Search)
	found := all
	if wanted != "" {
		found = slices.DeleteFunc(slices.Clone(all), func(row T) bool {
			return !slices.ContainsFunc(texts(row), func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
		})
	}
	p.Found = len(found)
	p.Pages = max(1, (p.Found+perPage-1)/perPage)
	number, _ := strconv.Atoi(query.Get("page")) // 0 is the first page
	p.Page = min(max(number, 1), p.Pages)
	from, to := (p.Page-1)*perPage, min(p.Page*perPage, p.Found)
	p.Rows, p.From, p.To = found[from:to], min(from+1, to), to
	if p.Page > 1 {
		p.Previous = p.link(p.Page - 1)
	}
	if p.Page < p.Pages {
		p.Next = p.link(p.Page + 1)
	}
	return p
}

func (p pageOf[T]) link(page int) string {
	query := url.Values{"page": {strconv.Itoa(page)}}
	for name, value := range map[string]string{"q": p.Search, "state": p.State} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return p.Path + "?" + query.Encode()
}

func volumeLink(name string) string { return "/volumes/" + url.PathEscape(name) }

func settingLink(name string) string { return "/settings/" + url.PathEscape(name) }

// planLink is the form of a plan, filled in.
func planLink(name, value string) string {
	return "/plan?" + url.Values{"name": {name}, "value": {value}}.Encode()
}

func fenceLink(node string) string { return "/fences/" + url.PathEscape(node) }

// serviceLink of <namespace>/<name>.
func serviceLink(service string) string {
	namespace, name, _ := strings.Cut(service, "/")
	return "/nfs/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}
