/** The renderer's own words. What a survey says is the server's, already in the person's language. */

const KEYS = [
  "next",
  "back",
  "send",
  "skip",
  "close",
  "optional",
  "required",
  "least",
  "most",
  "shortest",
  "longest",
  "email",
  "url",
  "phone",
  "number",
  "min",
  "max",
  "step",
  "date",
  "consent",
  "rows",
  "field",
  "other",
  "words",
  "link",
  "open",
  "newTab",
  "up",
  "down",
  "moved",
  "of",
  "question",
  "progress",
  "good",
  "bad",
  "thanks",
  "refused",
  "ended",
  "survey",
  "feedback",
  "message",
] as const;

/** A text's name. */
export type TextKey = (typeof KEYS)[number];

/** Gets a text, with values at `{0}`, `{1}`, `{2}`. */
export type Texts = (key: TextKey, ...values: (string | number)[]) => string;

/** Texts by language, in the order of their keys. */
export const LANGUAGES: Record<string, string> = {
  en: "Next|Back|Send|Skip|Close|(optional)|Please answer this question.|Please select at least {0}.|Please select at most {0}.|Please write at least {0} characters.|Please write at most {0} characters.|Please enter an e-mail address, such as name@example.com.|Please enter a web address that begins with https://.|Please enter a phone number with 5 to 15 digits.|Please enter a number.|The least is {0}.|The most is {0}.|Please use steps of {0}.|Please enter a whole date.|Please tick the box to go on.|Please answer in each row.|Please fill in “{0}”.|Other|Please specify|Please open the link first.|Open|(opens a new tab)|Move “{0}” up|Move “{0}” down|{0}: place {1} of {2}|{0} of {1}|Question {0} of {1}|Progress|Thumbs up|Thumbs down|Thank you!|This answer was not accepted.|This is no longer available.|New survey: {0}|Feedback|Message",
  de: "Weiter|Zurück|Senden|Überspringen|Schließen|(freiwillig)|Bitte beantworten Sie diese Frage.|Bitte wählen Sie mindestens {0} aus.|Bitte wählen Sie höchstens {0} aus.|Bitte schreiben Sie mindestens {0} Zeichen.|Bitte schreiben Sie höchstens {0} Zeichen.|Bitte geben Sie eine E-Mail-Adresse ein, etwa name@example.com.|Bitte geben Sie eine Webadresse ein, die mit https:// beginnt.|Bitte geben Sie eine Telefonnummer mit 5 bis 15 Ziffern ein.|Bitte geben Sie eine Zahl ein.|Der kleinste Wert ist {0}.|Der größte Wert ist {0}.|Bitte verwenden Sie Schritte von {0}.|Bitte geben Sie ein vollständiges Datum ein.|Bitte stimmen Sie zu, um fortzufahren.|Bitte antworten Sie in jeder Zeile.|Bitte füllen Sie „{0}“ aus.|Anderes|Bitte angeben|Bitte öffnen Sie zuerst den Link.|Öffnen|(öffnet einen neuen Tab)|„{0}“ nach oben|„{0}“ nach unten|{0}: Platz {1} von {2}|{0} von {1}|Frage {0} von {1}|Fortschritt|Daumen hoch|Daumen runter|Vielen Dank!|Diese Antwort wurde nicht angenommen.|Das ist nicht mehr verfügbar.|Neue Umfrage: {0}|Feedback|Nachricht",
  fr: "Suivant|Retour|Envoyer|Passer|Fermer|(facultatif)|Veuillez répondre à cette question.|Veuillez en choisir au moins {0}.|Veuillez en choisir au plus {0}.|Veuillez écrire au moins {0} caractères.|Veuillez écrire au plus {0} caractères.|Veuillez saisir une adresse e-mail, par exemple nom@example.com.|Veuillez saisir une adresse web qui commence par https://.|Veuillez saisir un numéro de téléphone de 5 à 15 chiffres.|Veuillez saisir un nombre.|Le minimum est {0}.|Le maximum est {0}.|Veuillez utiliser des pas de {0}.|Veuillez saisir une date complète.|Veuillez cocher la case pour continuer.|Veuillez répondre à chaque ligne.|Veuillez remplir « {0} ».|Autre|Veuillez préciser|Veuillez d’abord ouvrir le lien.|Ouvrir|(ouvre un nouvel onglet)|Monter « {0} »|Descendre « {0} »|{0} : place {1} sur {2}|{0} sur {1}|Question {0} sur {1}|Progression|Pouce levé|Pouce baissé|Merci !|Cette réponse n’a pas été acceptée.|Ceci n’est plus disponible.|Nouvelle enquête : {0}|Votre avis|Message",
  es: "Siguiente|Atrás|Enviar|Omitir|Cerrar|(opcional)|Responda a esta pregunta.|Seleccione al menos {0}.|Seleccione como máximo {0}.|Escriba al menos {0} caracteres.|Escriba como máximo {0} caracteres.|Introduzca un correo electrónico, por ejemplo nombre@example.com.|Introduzca una dirección web que empiece por https://.|Introduzca un teléfono de 5 a 15 cifras.|Introduzca un número.|El mínimo es {0}.|El máximo es {0}.|Use pasos de {0}.|Introduzca una fecha completa.|Marque la casilla para continuar.|Responda en cada fila.|Rellene «{0}».|Otro|Especifique|Abra primero el enlace.|Abrir|(abre una pestaña nueva)|Subir «{0}»|Bajar «{0}»|{0}: puesto {1} de {2}|{0} de {1}|Pregunta {0} de {1}|Progreso|Pulgar arriba|Pulgar abajo|¡Gracias!|Esta respuesta no se ha aceptado.|Esto ya no está disponible.|Nueva encuesta: {0}|Opinión|Mensaje",
  ar: "التالي|السابق|إرسال|تخطٍّ|إغلاق|(اختياري)|يرجى الإجابة عن هذا السؤال.|يرجى اختيار {0} على الأقل.|يرجى اختيار {0} على الأكثر.|يرجى كتابة {0} حرفًا على الأقل.|يرجى كتابة {0} حرفًا على الأكثر.|يرجى إدخال بريد إلكتروني، مثل name@example.com.|يرجى إدخال عنوان ويب يبدأ بـ https://.|يرجى إدخال رقم هاتف من 5 إلى 15 رقمًا.|يرجى إدخال رقم.|الحد الأدنى {0}.|الحد الأقصى {0}.|يرجى استخدام خطوات بمقدار {0}.|يرجى إدخال تاريخ كامل.|يرجى تحديد المربع للمتابعة.|يرجى الإجابة في كل صف.|يرجى ملء «{0}».|غير ذلك|يرجى التوضيح|يرجى فتح الرابط أولًا.|فتح|(يفتح علامة تبويب جديدة)|نقل «{0}» إلى أعلى|نقل «{0}» إلى أسفل|{0}: المرتبة {1} من {2}|{0} من {1}|السؤال {0} من {1}|التقدم|إعجاب|عدم إعجاب|شكرًا لك!|لم تُقبل هذه الإجابة.|لم يعد هذا متاحًا.|استبيان جديد: {0}|رأيك|رسالة",
};

/** The language of a locale that there are texts in; English otherwise. */
export function languageOf(locale: string): string {
  const language = locale.toLowerCase().split(/[-_]/)[0] ?? "";
  return language in LANGUAGES ? language : "en";
}

/** The texts of a language. */
export function textsOf(language: string): Texts {
  const texts = (LANGUAGES[language] ?? "").split("|");
  return (key, ...values) =>
    (texts[KEYS.indexOf(key)] ?? key).replace(/\{(\d)\}/g, (_, place: string) => `${values[+place] ?? ""}`);
}

/** Which way a text is written, by its first letter that has a direction. */
export function directionOf(text: string): "rtl" | "ltr" {
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(first)
    ? "rtl"
    : "ltr";
}
