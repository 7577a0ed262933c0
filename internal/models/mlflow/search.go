// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"cmp"
	"context"
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/models/v1alpha1"
)

// What a page may have of models and of versions, and of versions what it has unless the
// request says otherwise, as in MLflow.
const (
	maxModels, modelsInPage     = 1000, 100
	maxVersions, versionsInPage = 200_000, 10_000
)

// condition is one comparison of a filter.
type condition struct {
	field, operator string
	values          []string
}

// comparison is one of MLflow's: a field, such as name, tags.team or tags.`a key`; an
// operator; a text in quotes, a number, or a list of texts.
var comparison = regexp.MustCompile(`(?is)^\s*(tags?\.(?:` + "`[^`]*`" + `|"[^"]*"|[\w.-]+)|[A-Za-z_]+)\s*(=|!=|<=|>=|<|>|\bNOT\s+LIKE\b|\bLIKE\b|\bILIKE\b|\bIN\b)\s*('[^']*'|"[^"]*"|\d+|\(\s*(?:'[^']*'|"[^"]*")(?:\s*,\s*(?:'[^']*'|"[^"]*"))*\s*\))\s*`)

var (
	and      = regexp.MustCompile(`(?i)^AND\b`)
	listText = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// parse reads a filter: comparisons with AND between them.
func parse(filter string, fields ...string) ([]condition, error) {
	var conditions []condition
	for rest := strings.TrimSpace(filter); rest != ""; {
		at := comparison.FindStringSubmatchIndex(rest)
		if at == nil {
			return nil, invalid("cannot read the filter at %.100q: it must be comparisons, such as name = 'digits' or tags.team LIKE '%%a%%', with AND between them", rest)
		}
		c := condition{field: rest[at[2]:at[3]], operator: strings.ToUpper(strings.Join(strings.Fields(rest[at[4]:at[5]]), " "))}
		value := rest[at[6]:at[7]]
		if value[0] == '(' != (c.operator == "IN") {
			return nil, invalid("cannot read the filter at %.100q: IN needs a list of texts, such as ('1', '2'), and only IN does", rest)
		}
		if value[0] == '(' {
			for _, text := range listText.FindAllString(value, -1) {
				c.values = append(c.values, text[1:len(text)-1])
			}
		} else {
			c.values = []string{strings.Trim(value, `'"`)}
		}
		if prefix, key, isTag := strings.Cut(c.field, "."); isTag && strings.HasPrefix(strings.ToLower(prefix), "tag") {
			c.field = "tags." + strings.Trim(key, "`\"")
		} else if c.field = strings.ToLower(c.field); !slices.Contains(fields, c.field) {
			return nil, invalid("cannot filter by %.100q: use %s or tags.KEY", c.field, strings.Join(fields, ", "))
		}
		conditions = append(conditions, c)
		rest = strings.TrimSpace(rest[at[1]:])
		if rest == "" {
			break
		}
		next := and.FindString(rest)
		if next == "" || strings.TrimSpace(rest[len(next):]) == "" {
			return nil, invalid("cannot read the filter at %.100q: AND and another comparison must follow", rest)
		}
		rest = rest[len(next):]
	}
	return conditions, nil
}

// holds reports whether a value of the field meets the condition; has is whether there
// is one at all.
func (c condition) holds(value string, has bool) bool {
	if !has {
		return false
	}
	want := c.values[0]
	switch c.operator {
	case "IN":
		return slices.Contains(c.values, value)
	case "=":
		return value == want
	case "!=":
		return value != want
	case "LIKE":
		return like(value, want)
	case "NOT LIKE":
		return !like(value, want)
	case "ILIKE":
		return like(strings.ToLower(value), strings.ToLower(want))
	}
	order := cmp.Compare(value, want)
	a, errA := strconv.ParseInt(value, 10, 64)
	b, errB := strconv.ParseInt(want, 10, 64)
	if errA == nil && errB == nil {
		order = cmp.Compare(a, b)
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// like matches SQL's pattern: % is any text, _ any character. It takes at most time
// proportional to the product of the lengths.
func like(value, pattern string) bool {
	v, p := []rune(value), []rune(pattern)
	i, j, star, mark := 0, 0, -1, 0
	for i < len(v) {
		switch {
		case j < len(p) && p[j] == '%':
			star, mark = j, i
			j++
		case j < len(p) && (p[j] == '_' || p[j] == v[i]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	for j < len(p) && p[j] == '%' {
		j++
	}
	return j == len(p)
}

// tagPrompt is the tag by which MLflow tells prompts, which are registered models, too,
// from models. Its clients ask for what has it or not; to them what lacks it has "false".
const tagPrompt = "mlflow.prompt.is_prompt"

// matches reports whether an object meets all conditions. value returns the value of a
// field that is no tag.
func matches(conditions []condition, tags map[string]string, value func(field string) string) bool {
	for _, c := range conditions {
		text, has := "", true
		if key, isTag := strings.CutPrefix(c.field, "tags."); isTag {
			text, has = tags[key]
			if key == tagPrompt && !has {
				text, has = "false", true
			}
		} else {
			text = value(c.field)
		}
		if !c.holds(text, has) {
			return false
		}
	}
	return true
}

// order sorts answers as order_by says. by returns the field of an answer as text; ties
// keep the order that they had.
func order[T any](answers []T, orderBy []string, fields []string, by func(T, string) string) error {
	for _, clause := range slices.Backward(orderBy) {
		words := strings.Fields(clause)
		if len(words) == 0 || len(words) > 2 || !slices.Contains(fields, words[0]) || len(words) == 2 && !strings.EqualFold(words[1], "ASC") && !strings.EqualFold(words[1], "DESC") {
			return invalid("cannot order by %.100q: use %s, and ASC or DESC", clause, strings.Join(fields, ", "))
		}
		descending := len(words) == 2 && strings.EqualFold(words[1], "DESC")
		slices.SortStableFunc(answers, func(a, b T) int {
			x, y := by(a, words[0]), by(b, words[0])
			result := cmp.Compare(x, y)
			i, errX := strconv.ParseInt(x, 10, 64)
			j, errY := strconv.ParseInt(y, 10, 64)
			if errX == nil && errY == nil {
				result = cmp.Compare(i, j)
			}
			if descending {
				return -result
			}
			return result
		})
	}
	return nil
}

// page cuts the page out of answers that the request asks for, and returns the token of
// the next, "" after the last.
func page[T any](c *call, answers []T, otherwise, most int) ([]T, string, error) {
	size := int(c.request.MaxResults)
	if size == 0 {
		size = otherwise
	}
	if size < 1 || size > most {
		return nil, "", invalid("max_results is %d: it must be between 1 and %d", size, most)
	}
	from := 0
	if c.request.PageToken != "" {
		text, err := base64.StdEncoding.DecodeString(c.request.PageToken)
		if err == nil {
			from, err = strconv.Atoi(string(text))
		}
		if err != nil || from < 0 {
			return nil, "", invalid("page_token %.100q does not come from an earlier answer", c.request.PageToken)
		}
	}
	answers = answers[min(from, len(answers)):]
	if len(answers) <= size {
		return answers, "", nil
	}
	return answers[:size], base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(from + size))), nil
}

func searchModels(ctx context.Context, c *call) (any, error) {
	conditions, err := parse(c.request.Filter, "name")
	if err != nil {
		return nil, err
	}
	var models v1alpha1.ModelList
	if err := c.List(ctx, &models, client.InNamespace(c.namespace)); err != nil {
		return nil, failure("the models in namespace "+c.namespace, err)
	}
	versions, err := c.versions(ctx, "")
	if err != nil {
		return nil, err
	}
	answers := []registeredModel{}
	for i := range models.Items {
		if m := &models.Items[i]; matches(conditions, m.Spec.Tags, func(string) string { return m.Name }) {
			answers = append(answers, answerOf(m, versions))
		}
	}
	slices.SortFunc(answers, func(a, b registeredModel) int { return cmp.Compare(a.Name, b.Name) })
	err = order(answers, c.request.OrderBy, []string{"name", "timestamp", "last_updated_timestamp", "creation_timestamp"}, func(m registeredModel, field string) string {
		switch field {
		case "name":
			return m.Name
		case "creation_timestamp":
			return strconv.FormatInt(m.Created, 10)
		}
		return strconv.FormatInt(m.Updated, 10)
	})
	if err != nil {
		return nil, err
	}
	answers, next, err := page(c, answers, modelsInPage, maxModels)
	if err != nil {
		return nil, err
	}
	return map[string]any{"registered_models": answers, "next_page_token": next}, nil
}

func searchVersions(ctx context.Context, c *call) (any, error) {
	conditions, err := parse(c.request.Filter, "name", "version_number", "run_id", "source_path", "current_stage")
	if err != nil {
		return nil, err
	}
	var models v1alpha1.ModelList
	if err := c.List(ctx, &models, client.InNamespace(c.namespace)); err != nil {
		return nil, failure("the models in namespace "+c.namespace, err)
	}
	byName := map[string]*v1alpha1.Model{}
	for i := range models.Items {
		byName[models.Items[i].Name] = &models.Items[i]
	}
	versions, err := c.versions(ctx, "")
	if err != nil {
		return nil, err
	}
	answers := []modelVersion{}
	for i := range versions {
		v := &versions[i]
		m := byName[v.Spec.Model]
		if m == nil {
			continue // it goes with its model
		}
		answer := versionOf(m, v)
		if matches(conditions, v.Spec.Tags, func(field string) string { return answer.field(field) }) {
			answers = append(answers, answer)
		}
	}
	// MLflow's own order: the newest first.
	slices.SortFunc(answers, func(a, b modelVersion) int {
		x, _ := strconv.ParseInt(a.Version, 10, 64)
		y, _ := strconv.ParseInt(b.Version, 10, 64)
		return cmp.Or(cmp.Compare(b.Updated, a.Updated), cmp.Compare(a.Name, b.Name), cmp.Compare(y, x))
	})
	err = order(answers, c.request.OrderBy, []string{"name", "version_number", "creation_timestamp", "last_updated_timestamp"}, modelVersion.field)
	if err != nil {
		return nil, err
	}
	answers, next, err := page(c, answers, versionsInPage, maxVersions)
	if err != nil {
		return nil, err
	}
	return map[string]any{"model_versions": answers, "next_page_token": next}, nil
}

// field is a field of a version as text, for filters and orders.
func (v modelVersion) field(name string) string {
	switch name {
	case "name":
		return v.Name
	case "version_number":
		return v.Version
	case "run_id":
		return v.RunID
	case "source_path":
		return v.Source
	case "current_stage":
		return v.Stage
	case "creation_timestamp":
		return strconv.FormatInt(v.Created, 10)
	}
	return strconv.FormatInt(v.Updated, 10)
}
