// Package ui tests the page of `fairlead ui` in a real Chromium, which chromedp drives. It is a module of its
// own, so that the product does not depend on chromedp. Without a Chromium on PATH the tests say so and are skipped.
package ui
