// No first-run pages, and nothing asked of a network that is not there.
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("browser.tabs.firefox-view", false);
user_pref("app.normandy.enabled", false);
