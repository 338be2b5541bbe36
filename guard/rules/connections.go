package rules

import (
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// passwordKey are the names that a connection string has for what is secret in
// it.
const passwordKey = `(?i:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature|accesskey|secretkey|authtoken)`

// passwordValue is what they are set to: in quotes, or up to a semicolon.
const passwordValue = `"[^"\r\n]{1,100}"|'[^'\r\n]{1,100}'|[^\s;&,"'\x60<>\\{}()]`

// connections are the ways in which databases and brokers are addressed. Only
// the password goes: who logged in where is worth keeping in a log.
func connections() []match.Rule {
	return []match.Rule{
		{
			// postgres, mysql, mongodb+srv, redis, amqp, mqtt, ftp, smtp, https: all
			// of them have it before the @.
			ID:       "url-credentials",
			Pattern:  `://[^\s/:@"'\x60<>]{0,64}:(?P<secret>[^\s/@"'\x60<>]{1,100})@`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"postgres://app:" + "s3cr3t-p4ss" + "@db.internal:5432/app",
				"https://ann:" + "hunter2" + "@example.com/",
				"redis://:" + "q9Zr4Tn7" + "@localhost",
				"amqp://guest:" + "gu3st" + "@rabbit:5672/%2f",
				"mongodb+srv://app:" + "s3cr3t-p4ss" + "@cluster0.example.mongodb.net",
			},
			NoMatch: []string{
				"http://localhost:8080/@scope/package",
				"https://ann@example.com/",
				"see https://example.com: mail me@example.com",
				"http://[::1]:8080/",
				"https://ann:***@example.com/",
				"postgres://${USER}:${PASSWORD}@${HOST}/app",
				"https://%s:%s@%s/",
				"https://user:password@host/",
			},
		},
		{
			// ADO.NET, ODBC, Azure, StackExchange.Redis, and addresses of JDBC: a
			// pair in a list of pairs.
			ID:       "connection-string",
			Pattern:  `[;?&,]\s?` + passwordKey + `=(?P<secret>` + passwordValue + `+)(?:[\s;&,"'\x60<\\]|$)`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{unquoted(filledIn), noCode},
			Match: []string{
				"Server=db;Database=app;User Id=sa;Password=" + "s3cr3t-p4ss" + ";Encrypt=true",
				"Driver={ODBC Driver 18 for SQL Server};Server=db;UID=sa;PWD=" + "hunter2",
				"jdbc:postgresql://db/app?user=app&password=" + "s3cr3t-p4ss" + "&ssl=true",
				"jdbc:sqlserver://db:1433;databaseName=app;user=sa;password=" + "hunter2" + ";",
				"cache.example.net:6380,password=" + "q9Zr4Tn7Lw2Xk8Vb5Mc1=" + ",ssl=True",
				"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=" + "q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4Tn7Lw2Xk8Vb5Mc1==" + ";EndpointSuffix=core.windows.net",
				"Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=" + "q9Zr4Tn7Lw2Xk8Vb5Mc1=",
			},
			NoMatch: []string{
				"Server=db;User Id=sa;Password=${DB_PASSWORD};",
				"Server=db;User Id=sa;Password=<password>;",
				"https://example.com/login?user=ann&password=***",
				"for (i = 0; pwd=next(); i++)",
				"x = 1; password = getPassword(user)",
				"if (a) b(); pwd = e.target",
				"?password=password",
			},
		},
		{
			// The same with the password in front of the others.
			ID: "connection-string-first",
			Pattern: `\b` + passwordKey + `=(?P<secret>` + passwordValue + `{1,100});\s?` +
				`(?i:server|data source|host|addr|address|database|initial catalog|user id|user|uid|port|encrypt|ssl|trusted|integrated|persist|endpoint)`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{unquoted(filledIn), noCode},
			Match: []string{
				"Password=" + "s3cr3t-p4ss" + ";Server=db;User Id=sa",
				`"Pwd=` + "hunter2" + `; Uid=sa; Database=app"`,
			},
			NoMatch: []string{
				"Password=${DB_PASSWORD};Server=db",
				"password=hunter2; the rest is prose",
				"pwd=document.cookie;host=x",
			},
		},
		{
			// libpq and those who took it over: pairs with spaces between them.
			ID: "keyword-dsn",
			Pattern: `\b(?:host|hostaddr|port|dbname|user|sslmode|connect_timeout|application_name)=[^\s=]{1,64}\s{1,3}password=` +
				`(?P<secret>'[^'\r\n]{1,100}'|[^\s"'\x60\\]{1,100})`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{unquoted(filledIn), noCode},
			Match: []string{
				"host=db user=app password=" + "s3cr3t-p4ss" + " dbname=app",
				`"host=db port=5432 user=app password='` + "hunter 2" + `' sslmode=disable"`,
			},
			NoMatch: []string{
				"host=%s user=%s password=%s dbname=%s",
				"user=ann password=$PASSWORD",
				"user=ann says that password=secret is bad",
			},
		},
		{
			ID:       "oracle-thin",
			Pattern:  `(?i:jdbc:oracle:(?:thin|oci8?)):[^\s/@"']{1,64}/(?P<secret>[^\s@"'/]{1,64})@`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				"jdbc:oracle:thin:scott/" + "t1ger" + "@//db.internal:1521/ORCL",
				`url="jdbc:oracle:oci8:app/` + "s3cr3t-p4ss" + `@ORCL"`,
			},
			NoMatch: []string{
				"jdbc:oracle:thin:@//db.internal:1521/ORCL",
				"jdbc:oracle:thin:${user}/${password}@ORCL",
			},
		},
		{
			// Kafka's clients, and what else is set up for JAAS or SASL.
			ID:       "jaas-config",
			Pattern:  `(?i:LoginModule\s{1,4}(?:required|requisite|sufficient|optional)\s{1,4})[^;\r\n]{0,160}?\bpassword\s?=\s?\\?["'](?P<secret>[^"'\\\r\n]{1,100})["'\\]`,
			Group:    "secret",
			Severity: guard.High, Verdict: guard.Redact,
			Validators: []match.Validator{filledIn},
			Match: []string{
				`sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="app" password="` + "s3cr3t-p4ss" + `";`,
				`ScramLoginModule required username=\"app\" password=\"` + "hunter2" + `\";`,
			},
			NoMatch: []string{
				`PlainLoginModule required username="app" password="${KAFKA_PASSWORD}";`,
				"a LoginModule is required",
			},
		},
	}
}

// unquoted asks a validator about a text less the quotes around it.
func unquoted(v match.Validator) match.Validator {
	return match.Validator{Name: v.Name, Accept: func(text []byte) bool {
		if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
			text = text[1 : n-1]
		}
		return v.Accept(text)
	}}
}

// noCode rejects the names of source code: words with points between them, and
// no digit, such as e.target.value or this.password.
var noCode = match.Validator{Name: "no-code", Accept: func(text []byte) bool {
	point := false
	for i, b := range text {
		switch {
		case b == '.' && i > 0 && i+1 < len(text):
			point = true
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b == '_':
		default:
			return true
		}
	}
	return !point
}}
