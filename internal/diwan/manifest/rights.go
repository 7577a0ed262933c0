// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"diwan.dev/diwan/internal/platform/domain"
)

// ofTrials are the verbs on run objects of trials, whichever controller reconciles them.
var ofTrials = []string{"get", "list", "watch", "create", "patch", "delete"}

// right is a rule and the kinds that need it.
type right struct {
	domain.Rule
	without []string // names that leave the kinds out; "" for a kind that cannot be left out
}

// same reports whether two rights differ only in their resources.
func (r right) same(of right) bool {
	return slices.Equal(r.APIGroups, of.APIGroups) && slices.Equal(r.Verbs, of.Verbs) && r.When == of.When && r.Why == of.Why && slices.Equal(r.without, of.without)
}

// rights renders the templates with the RBAC rules of the operator and of users.
func rights(domains []domain.Domain) []byte {
	var out bytes.Buffer
	out.WriteString(generated)
	out.WriteString("{{- define \"diwan.rights\" }}\n")
	all := collect(domains)
	for len(all) > 0 {
		when, block, why := condition(all[0].without, all[0].When), "", ""
		for len(all) > 0 && condition(all[0].without, all[0].When) == when {
			r := all[0]
			all = all[1:]
			if r.Why != "" && r.Why != why {
				block += "# " + strings.Join(wrapped(r.Why, 84), "\n# ") + "\n"
			}
			why = r.Why
			block += fmt.Sprintf("- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]\n", groups(r.APIGroups), strings.Join(r.Resources, ", "), strings.Join(r.Verbs, ", "))
		}
		out.WriteString(under(when, block))
	}
	out.WriteString("{{- end }}\n")
	out.WriteString(users(domain.Kinds(domains...)))
	return out.Bytes()
}

// groups formats API groups; the core group has no name.
func groups(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		if texts[i] = name; name == "" {
			texts[i] = `""`
		}
	}
	return strings.Join(texts, ", ")
}

// collect merges the rules of all domains: each occurs once, and rules that differ only
// in their resources become one.
func collect(domains []domain.Domain) []right {
	var all []right
	for _, d := range domains {
		for _, k := range d.Kinds {
			if k.Trial != nil {
				all = append(all, right{domain.Allow(k.Group, ofTrials, k.Plural).Because("Run objects of trials, whichever controller reconciles them."), []string{""}})
			}
		}
	}
	for _, d := range domains {
		for _, k := range d.Kinds {
			for _, rule := range k.Rules {
				all = append(all, right{rule, []string{k.Without}})
			}
		}
		for _, rule := range d.Rules {
			all = append(all, right{rule, []string{""}})
		}
	}
	var once []right
	for _, r := range all {
		i := slices.IndexFunc(once, func(o right) bool {
			return slices.Equal(o.APIGroups, r.APIGroups) && slices.Equal(o.Resources, r.Resources) && slices.Equal(o.Verbs, r.Verbs) && o.When == r.When && o.Why == r.Why
		})
		if i < 0 {
			once = append(once, r)
		} else if !slices.Contains(once[i].without, r.without[0]) {
			once[i].without = append(once[i].without, r.without[0])
		}
	}
	var merged []right
	for _, r := range once {
		i := slices.IndexFunc(merged, r.same)
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		for _, resource := range r.Resources {
			if !slices.Contains(merged[i].Resources, resource) {
				merged[i].Resources = append(slices.Clone(merged[i].Resources), resource)
			}
		}
	}
	return merged
}

// users renders a template with the RBAC rules of users. Its parameters are the verbs,
// and whether to include the status subresource.
func users(kinds []domain.Kind) string {
	var order []string
	plain, status := map[string][]string{}, map[string][]string{}
	for _, k := range kinds {
		if k.Users == domain.UsersNone || slices.Contains(plain[k.Group], k.Plural) {
			continue
		}
		if plain[k.Group] == nil {
			order = append(order, k.Group)
		}
		plain[k.Group] = append(plain[k.Group], k.Plural)
		if k.Users == domain.UsersEditWithStatus {
			status[k.Group] = append(status[k.Group], k.Plural+"/status")
		}
	}
	var out strings.Builder
	out.WriteString("{{- define \"diwan.userRights\" }}\n")
	for _, group := range order {
		resources := strings.Join(plain[group], ", ")
		if len(status[group]) > 0 {
			resources += "{{ if .status }}, " + strings.Join(status[group], ", ") + "{{ end }}"
		}
		fmt.Fprintf(&out, "- apiGroups: [%s]\n  resources: [%s]\n  verbs: {{ toJson .verbs }}\n", group, resources)
	}
	out.WriteString("{{- end }}\n")
	return out.String()
}

// wrapped breaks a text into lines.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// withNames updates the values that the chart's schema allows for `without`.
func withNames(schema []byte, domains []domain.Domain) ([]byte, error) {
	var names []string
	for _, k := range domain.Kinds(domains...) {
		if k.Without != "" && !slices.Contains(names, k.Without) {
			names = append(names, k.Without)
		}
	}
	slices.Sort(names)
	text, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	place := regexp.MustCompile(`(?s)("without": \{.*?"enum": )\[[^\]]*\]`)
	if !place.Match(schema) {
		return nil, fmt.Errorf("values.schema.json has no list of what can be left out")
	}
	return place.ReplaceAll(schema, []byte("${1}"+strings.ReplaceAll(string(text), ",", ", "))), nil
}
